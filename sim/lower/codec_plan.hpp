#pragma once

#include <vector>

#include "cost/codec_cost.hpp"
#include "cost/stage_cost.hpp"
#include "plan/plan.hpp"
#include "platform/platform.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {

/// What codecs need to know about a stage on one kind of node.
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

  /// What the program of a stage compresses.
  CompressedTraffic traffic_of(StageId stage, const StageCost& cost) const;
  /// The sizes of the messages that one rank sends, in the order of MessageRow.
  std::vector<Bytes> message_sizes(const Device& device) const;
  /// The rows of a device's work table behind DeviceRow, in the order of CodecRow and BucketRow; none in a plan without
  /// compression.
  std::vector<Work> rows(const CodecStage& stage) const;

  /// Whether the stage's gradients are reduced in two collectives.
  bool reduces_in_two_parts(const CodecStage& stage) const {
    return gradient_parts(stage.stage, *stage.cost) == CodecParts::two;
  }
  /// The reduction of a rank's gradients after its last pass, without a fused embedding.
  EncodedCollective reduced_gradients(const CodecStage& stage) const;
  /// The reduction of one of a chunk's gradient_buckets(); nothing if gradients are not reduced by chunk.
  EncodedCollective reduced_bucket(const CodecStage& stage, int chunk) const;
  /// The gather of parameters after a sharded optimizer step; nothing if there is none.
  EncodedCollective gathered_parameters(const CodecStage& stage) const;

  /// The same of experts, among the ranks that hold the same ones; nothing where nobody else does.
  bool reduces_experts_in_two_parts(const CodecStage& stage) const {
    return expert_parts(stage.stage, *stage.cost) == CodecParts::two;
  }
  EncodedCollective reduced_experts(const CodecStage& stage) const;
  EncodedCollective reduced_expert_bucket(const CodecStage& stage, int chunk) const;
  EncodedCollective gathered_experts(const CodecStage& stage) const;

 private:
  /// What one rank sends to a neighbouring stage, one way.
  struct StageMessage {
    std::optional<Compressor> compressor;
    CodecMessage whole;
  };
  bool is_encoded(const StageMessage& message) const;
  CodecParts parts_of(const StageMessage& message) const;
  /// As it is where it is not compressed.
  EncodedMessage encoded(const StageMessage& message, const Device& device) const;
  CodecParts gradient_parts(StageId stage, const StageCost& cost) const;
  CodecParts expert_parts(StageId stage, const StageCost& cost) const;
  EncodedMessage over(const StageMessage& message, const CodecStage& stage,
                      BytesPerSecond way) const;
  Bytes chunk_gradients(StageId stage, const StageCost& cost, int chunk) const;
  /// In so many parts, among so many ranks.
  EncodedCollective reduction(const CodecStage& stage, CodecParts parts, int members, Bytes payload,
                              const std::vector<CodecMatrix>& matrices) const;
  EncodedCollective gathered(const Operation* gather, const CodecStage& stage, int members) const;
  void add_reduction_rows(const CodecStage& stage, std::vector<Work>& rows) const;

  const Transformer& model_;
  const Plan& plan_;
  const Compression& compression_;
  StageMessage activation_, gradient_;
};

}  // namespace windtunnel
