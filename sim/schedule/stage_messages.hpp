#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/pipeline_program.hpp"

namespace windtunnel::detail {

/// The messages of one stage: what each of its passes receives and sends, in which of the slots, compressed or not. There is one
/// channel to each neighbour, for activations and gradients alike.
class StageMessages {
 public:
  /// Adds the stages that it sends to to `targets`.
  StageMessages(const PipelineShape& shape, StageId stage, std::vector<StageId>& targets);

  /// Places in which messages arrive.
  std::uint32_t num_slots() const;

  std::optional<Op> receive(const Step& step) const;
  std::optional<Op> send(const Step& step) const;
  /// Adds a message in the parts in which its codec sends it.
  void add_parts(Op message, std::vector<Op>& ops) const;
  bool is_compressed(const Op& message) const;
  /// Whether any message may be.
  bool compresses() const {
    return shape_->compressed.activations != CodecParts::none ||
           shape_->compressed.gradients != CodecParts::none;
  }

 private:
  /// The chunks before and behind one of this stage, where they are on another stage.
  struct Neighbours {
    std::optional<ChunkPlace> before, behind;
  };
  static std::vector<Neighbours> neighbours_of(const ChunkMap& map, StageId stage, int chunks);
  /// Who gets a chunk's activations or gradients, and who sends them to it.
  const std::optional<ChunkPlace>& receiver(Phase phase, int chunk) const;
  const std::optional<ChunkPlace>& sender(Phase phase, int chunk) const;
  /// Whether a chunk sends towards higher stages, round from the last to the first.
  bool sends_up(Phase phase, int chunk) const {
    return map_.goes_up(chunk) == (phase == Phase::activation);
  }
  /// A channel to one of the neighbours, if any message goes there.
  std::uint8_t add_target(bool up, std::vector<StageId>& targets) const;
  Op message(OpKind kind, Phase phase, const Step& step, int receiving_chunk) const;
  CodecParts parts_of(const Op& message) const;

  const PipelineShape* shape_;
  StageId stage_;
  ChunkMap map_;
  std::vector<Neighbours> neighbours_;  ///< by chunk
  std::uint32_t microbatches_;
  std::uint32_t second_slots_;  ///< where the second parts of messages begin
  std::uint8_t up_, down_;      ///< channels to the neighbours, where there are any
};

}  // namespace windtunnel::detail
