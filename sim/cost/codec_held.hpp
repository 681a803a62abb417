#pragma once

#include <vector>

#include "operations/held.hpp"
#include "plan/compression.hpp"

namespace windtunnel {

/// What a codec keeps on one rank. A library's buffer bounds what is encoded at once; a codec that is only for what-ifs keeps nothing.

/// At each end of a message between stages: the encoded message, or its factors. At the sender also the residual, 4 bytes a value.
KeptByCodec kept_of_message(const Compressor& compressor, const CodecMessage& message);

/// Of a ring: two encoded blocks, one sent, one received.
KeptByCodec kept_of_ring(const Compressor& compressor, Bytes payload, Bytes element, int members);

/// Of gradients: the blocks of their ring where they are sent as values, and with error feedback a residual of 4 bytes a value.
KeptByCodec kept_of_gradients(const Compressor& compressor, Bytes payload, Bytes element,
                              int members);
/// Of gradients with these matrices, which may be sent as factors of each.
KeptByCodec kept_of_gradients(const Compressor& compressor,
                              const std::vector<CodecMatrix>& matrices, Bytes element, int members);

}  // namespace windtunnel
