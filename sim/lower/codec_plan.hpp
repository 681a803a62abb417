#pragma once

#include <vector>

#include "cost/codec_cost.hpp"
#include "cost/stage_cost.hpp"
#include "plan/plan.hpp"
#include "platform/platform.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {

/// Inputs of a stage's codecs, on one kind of node.
struct CodecStage {
  StageId stage;
  const Device* device = nullptr;
  const StageCost* cost = nullptr;
  int ranks = 1;  ///< of one simulated device
  /// Bandwidth of the routes to the next and the previous stage, with nothing else on them; 0 if there is none. Of two routes, as in the
  /// middle of a V, the slower one.
  BytesPerSecond to_next{}, to_previous{};
};

/// The gradients that one rank of the stage reduces, uncompressed, without those of experts and of a fused embedding.
Bytes stage_gradients(const Transformer& model, const Plan& plan, StageId stage,
                      const StageCost& cost);

/// Compression in one plan: what is encoded, how many bytes remain, and what encoding costs. The referenced objects must
/// outlive it.
class CodecPlan {
 public:
  CodecPlan(const Transformer& model, const Plan& plan, const SoftwareProfile& software);

  /// The traffic that the program of a stage compresses.
  CompressedTraffic traffic_of(StageId stage, const StageCost& cost) const;
  /// The sizes of the messages that one rank sends, in the order of MessageRow.
  std::vector<Bytes> message_sizes(const Device& device) const;
  /// The rows of a device's work table behind its kernels, in the order of DeviceRow and Reduction; none in a plan without compression.
  std::vector<Work> rows(const CodecStage& stage) const;

  /// In how many parts the stage's gradients are reduced, or those of its experts.
  CodecParts codec_parts(const CodecStage& stage, bool of_experts) const;
  /// A reduction of a rank's gradients, without a fused embedding: after its last pass, or of one of a chunk's gradient_buckets(). Nothing
  /// where there is no such reduction. Limit: buckets of experts' gradients are not sent as factors.
  EncodedCollective reduced(const CodecStage& stage, Reduction of) const;
  /// The gather of parameters after a sharded optimizer step, and that of experts'; nothing if there is none.
  EncodedCollective gathered_parameters(const CodecStage& stage) const;
  EncodedCollective gathered_experts(const CodecStage& stage) const;

 private:
  /// A message that one rank sends to a neighbouring stage, in one direction.
  struct StageMessage {
    std::optional<Compressor> compressor;
    CodecMessage whole;
  };
  bool is_encoded(const StageMessage& message) const;
  CodecParts codec_parts(const StageMessage& message) const;
  /// The message with its codec's work; unchanged if it is not compressed.
  EncodedMessage encoded(const StageMessage& message, const Device& device) const;
  CodecParts gradient_parts(StageId stage, const StageCost& cost) const;
  CodecParts expert_parts(StageId stage, const StageCost& cost) const;
  EncodedMessage over(const StageMessage& message, const CodecStage& stage,
                      BytesPerSecond bandwidth) const;
  Bytes chunk_gradients(StageId stage, const StageCost& cost, int chunk) const;
  /// Bytes that one rank has to reduce; nothing if there is no such reduction.
  std::optional<Bytes> payload_of(const CodecStage& stage, Reduction of) const;
  std::vector<CodecMatrix> matrices_of(StageId stage, Reduction of) const;
  EncodedCollective gathered(const Operation* gather, const CodecStage& stage, int members) const;

  const Transformer& model_;
  const Plan& plan_;
  const Compression& compression_;
  StageMessage activation_, gradient_;
};

}  // namespace windtunnel
