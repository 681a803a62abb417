#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/compression.hpp"
#include "platform/device.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Whether a message of this size is compressed at all.
inline bool is_compressed(const Compressor& compressor, Bytes size) {
  return size >= compressor.threshold;
}

/// A message from one rank to one other, encoded once (seeds: MVAPICH, Optimus-CC): what its codec says in sim/cost/codecs/. S bytes
/// in ceil(S / buffer) pieces. Ignores what the kernels take from computing beside them.
EncodedMessage encode_message(const Compressor& compressor, const Device& device,
                              const CodecMessage& message);

/// A ring over `members` of S bytes per member. A block S/n below the threshold is not compressed. Not for factors.
EncodedCollective encode_ring(const Compressor& compressor, const Device& device, RingKind kind,
                              Bytes payload, Bytes element, int members);

/// The all-reduce of a set of matrices as factors. `rest`: bytes of vectors, which go uncompressed with the first.
EncodedCollective encode_powersgd(const Compressor& compressor, const Device& device,
                                  const std::vector<CodecMatrix>& matrices, Bytes rest);

/// What is left to wait for of a message's codec work when it goes in Q equal pieces, one behind the other through three machines:
/// the encoder (E in all), the wire (x = bytes / bandwidth) and the decoder (D).
///   whole = max(E, x, D) + (E + x + D - max(E, x, D)) / Q;   left of E + D: whole - x, shared between both ends in proportion
/// A flow shop of equal jobs in series: the first piece passes all three, the others follow as fast as the slowest allows. The latency
/// of the way is not in x: pieces are on the way at the same time, so the last one pays it once, after its bytes.
EncodedMessage in_chunks(const EncodedMessage& message, int chunks, Seconds wire);

/// Why the codec cannot run on this device; nothing when it can.
std::optional<std::string> missing_speed(const Compressor& compressor, const Device& device);

}  // namespace windtunnel
