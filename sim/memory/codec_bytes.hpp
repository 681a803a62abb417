#pragma once

#include "plan/plan.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// What compression keeps on one rank beside everything else, all through an iteration.
struct CodecBytes {
  Bytes residuals{};  ///< error feedback: what was lost of the last message or gradients, in fp32
  Bytes factors{};    ///< of codecs that send them; one also starts the next iteration
  Bytes buffers{};    ///< encoded bytes before they are sent and after they are received
  Bytes total() const { return residuals + factors + buffers; }
};

/// Of one rank of `stage`:
///   stage messages   at each end the encoded message, or its factors; at the sender the residual, 4 bytes a value
///   gradients        factors of every matrix, and residuals of all of them; elementwise: two encoded blocks of the ring
///   other rings      two encoded blocks: one sent, one received
/// A library's buffer bounds what is encoded at once. A codec that is only for what-ifs keeps nothing. Automatic stages count as compressed.
CodecBytes codec_bytes(const Transformer& model, const Plan& plan, const SoftwareProfile& software,
                       StageId stage);

}  // namespace windtunnel
