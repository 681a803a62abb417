#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operations/held.hpp"
#include "operations/label.hpp"
#include "plan/compression.hpp"
#include "plan/plan.hpp"
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

/// A message between stages, an activation or its gradient, as its codec sees it: the tokens that one rank sends (1/t of them where messages are scattered over
/// the tensor group), by the hidden size. At tensor 8 that is the matrix of Optimus-CC's released code, which always divides by 8.
CodecMessage stage_message(const Transformer& model, const Plan& plan,
                           const SoftwareProfile& software, Label message);
/// The same of `size` bytes.
CodecMessage stage_message(const Transformer& model, const Plan& plan, Bytes size);

/// The matrices among the gradients of one model chunk of a stage, on one rank, without those of experts: those of its layers, the word embedding where it
/// is held and reduced with the rest (a fused embedding synchronisation takes it out), learned positions.
std::vector<CodecMatrix> gradient_matrices(const Transformer& model, const Plan& plan,
                                           StageId stage, int chunk);

/// The matrices of the experts that one rank holds of a chunk.
std::vector<CodecMatrix> expert_gradient_matrices(const Transformer& model, const Plan& plan,
                                                  StageId stage, int chunk);

/// Whether the word embedding of tied first and last stages is synchronised over both and all replicas at once.
bool fuses_embedding_sync(const Transformer& model, const Plan& plan);

/// Whether a chunk holds a copy of the word embedding that is synchronised apart from the other gradients.
bool holds_fused_embedding(const Transformer& model, const Plan& plan, StageId stage, int chunk);

}  // namespace windtunnel
