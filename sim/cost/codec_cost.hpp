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

/// True if a message of this size is compressed.
inline bool is_compressed(const Compressor& compressor, Bytes size) {
  return size >= compressor.threshold;
}

/// A message from one rank to one other, encoded once (seeds: MVAPICH, Optimus-CC): what its codec says in sim/cost/codecs/. S bytes
/// in ceil(S / buffer) pieces. Ignores what the kernels take from computing at the same time as them.
EncodedMessage encode_message(const Compressor& compressor, const Device& device,
                              const CodecMessage& message);

/// A ring over `members` of S bytes per member. A block S/n below the threshold is not compressed. Not for factors.
EncodedCollective encode_ring(const Compressor& compressor, const Device& device, RingKind kind,
                              Bytes payload, Bytes element, int members);

/// The all-reduce of a set of matrices as factors. `rest`: bytes of vectors, which go uncompressed with the first.
EncodedCollective encode_powersgd(const Compressor& compressor, const Device& device,
                                  const std::vector<CodecMatrix>& matrices, Bytes rest);

/// The exposed part of a message's codec work if it goes in Q equal pieces, one after the other, through a pipeline of three machines:
/// the encoder (E in all), the wire (x = bytes / bandwidth) and the decoder (D).
///   whole = max(E, x, D) + (E + x + D - max(E, x, D)) / Q;   left of E + D: whole - x, shared between both ends in proportion
/// A flow shop of equal jobs in series: the first piece passes all three, the others follow as fast as the slowest allows. The latency
/// of the path is not in x: pieces are in flight at the same time, so the last one pays it once, after its bytes.
EncodedMessage in_chunks(const EncodedMessage& message, int chunks, Seconds wire);

/// Why the codec cannot run on this device; nothing when it can.
std::optional<std::string> missing_speed(const Compressor& compressor, const Device& device);

/// Memory that a codec keeps on one rank. A library's buffer bounds how much is encoded at once; a codec that is only for what-ifs keeps
/// nothing.

/// At each end of a message between stages: the encoded message, or its factors. At the sender also the residual, 4 bytes a value.
KeptByCodec kept_of_message(const Compressor& compressor, const CodecMessage& message);

/// Kept for a ring: two encoded blocks, one sent, one received.
KeptByCodec kept_of_ring(const Compressor& compressor, Bytes payload, Bytes element, int members);

/// Kept for gradients: the blocks of their ring if they are sent as values, and with error feedback a residual of 4 bytes per value.
KeptByCodec kept_of_gradients(const Compressor& compressor, Bytes payload, Bytes element,
                              int members);
/// Kept for gradients with these matrices, each of which may be sent as factors.
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

/// True if the tied word embedding of first and last stage is synchronised over both stages and all replicas in one collective.
bool fuses_embedding_sync(const Transformer& model, const Plan& plan);

/// True if a chunk holds a copy of the word embedding that is synchronised separately from the other gradients.
bool holds_fused_embedding(const Transformer& model, const Plan& plan, StageId stage, int chunk);

}  // namespace windtunnel
