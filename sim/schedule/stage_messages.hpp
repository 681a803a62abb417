#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/pipeline_program.hpp"

namespace windtunnel::detail {

/// The messages of one stage: what each of its passes receives and sends, in which of the slots, compressed or not.
class StageMessages {
 public:
  /// Adds the stages that it sends to to `targets`.
  StageMessages(const PipelineShape& shape, StageId stage, std::vector<StageId>& targets);

  /// Places in which messages arrive.
  std::uint32_t num_slots() const;

  std::optional<Op> receive(const Step& step) const;
  std::optional<Op> send(const Step& step) const;
  /// Those of several passes, each message in the parts in which its codec sends it.
  std::vector<Op> receives(const std::vector<Step>& steps) const;
  std::vector<Op> sends(const std::vector<Step>& steps) const;
  bool is_compressed(const Op& message) const;

 private:
  bool is_first_part(const Step& step) const { return stage_ == 0 && step.chunk == 0; }
  bool is_last_part(const Step& step) const {
    return stage_ == shape_->stages - 1 && step.chunk == shape_->chunks - 1;
  }
  Op message(OpKind kind, Phase phase, const Step& step, int receiving_chunk) const;
  void add_parts(Op message, std::vector<Op>& ops) const;
  CodecParts parts_of(const Op& message) const;

  const PipelineShape* shape_;
  int stage_;
  std::uint32_t microbatches_;
  std::uint32_t second_slots_;  ///< where the second parts of messages begin
  std::uint8_t next_ = 0, previous_ = 0;
};

}  // namespace windtunnel::detail
