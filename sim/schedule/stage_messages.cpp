#include "schedule/stage_messages.hpp"

namespace windtunnel::detail {

StageMessages::StageMessages(const PipelineShape& shape, StageId stage,
                             std::vector<StageId>& targets)
    : shape_(&shape),
      stage_(static_cast<int>(stage.index())),
      microbatches_(static_cast<std::uint32_t>(shape.microbatches)),
      second_slots_(2 * microbatches_ * static_cast<std::uint32_t>(shape.chunks)) {
  const auto add_target = [&](int target) {
    targets.push_back(StageId{target % shape.stages});
    return static_cast<std::uint8_t>(targets.size() - 1);
  };
  const bool ring = shape.chunks > 1;
  if (shape.stages > 1 && (stage_ + 1 < shape.stages || ring)) next_ = add_target(stage_ + 1);
  if (shape.stages > 1 && (stage_ > 0 || ring)) previous_ = add_target(stage_ - 1 + shape.stages);
}

std::uint32_t StageMessages::num_slots() const {
  const bool two_parts = shape_->compressed.activations == CodecParts::two ||
                         shape_->compressed.gradients == CodecParts::two;
  return (two_parts ? 2 : 1) * second_slots_;
}

Op StageMessages::message(OpKind kind, Phase phase, const Step& step, int receiving_chunk) const {
  const bool activation = phase == Phase::activation;
  const auto list =
      static_cast<std::uint32_t>(activation ? receiving_chunk : shape_->chunks + receiving_chunk);
  Op op;
  op.kind = kind;
  op.phase = phase;
  op.traffic = activation ? Traffic::pipeline_forward : Traffic::pipeline_backward;
  op.peer = activation ? next_ : previous_;  // of a send; a receive has none
  op.chunk = step.chunk;
  op.work = static_cast<std::uint16_t>(activation ? MessageRow::activation : MessageRow::gradient);
  op.microbatch = step.microbatch;
  op.slot = list * microbatches_ + step.microbatch;
  return op;
}

std::optional<Op> StageMessages::receive(const Step& step) const {
  if (step.phase == Phase::forward && !is_first_part(step))
    return message(OpKind::receive, Phase::activation, step, step.chunk);
  if (step.phase == Phase::backward && !is_last_part(step))
    return message(OpKind::receive, Phase::gradient, step, step.chunk);
  return std::nullopt;
}

std::optional<Op> StageMessages::send(const Step& step) const {
  const int wraps_up = stage_ == shape_->stages - 1, wraps_down = stage_ == 0;
  if (step.phase == Phase::forward && !is_last_part(step))
    return message(OpKind::send, Phase::activation, step, step.chunk + wraps_up);
  if (step.phase == Phase::backward && !is_first_part(step))
    return message(OpKind::send, Phase::gradient, step, step.chunk - wraps_down);
  return std::nullopt;
}

std::vector<Op> StageMessages::receives(const std::vector<Step>& steps) const {
  std::vector<Op> ops;
  for (const Step& step : steps)
    if (const auto op = receive(step)) add_parts(*op, ops);
  return ops;
}

std::vector<Op> StageMessages::sends(const std::vector<Step>& steps) const {
  std::vector<Op> ops;
  for (const Step& step : steps)
    if (const auto op = send(step)) add_parts(*op, ops);
  return ops;
}

void StageMessages::add_parts(Op message, std::vector<Op>& ops) const {
  const bool activation = message.phase == Phase::activation;
  if (!is_compressed(message)) return ops.push_back(message);
  message.work = static_cast<std::uint16_t>(activation ? MessageRow::encoded_activation
                                                       : MessageRow::encoded_gradient);
  ops.push_back(message);
  if (parts_of(message) == CodecParts::one) return;
  message.work = static_cast<std::uint16_t>(activation ? MessageRow::encoded_activation_second
                                                       : MessageRow::encoded_gradient_second);
  message.slot += second_slots_;
  ops.push_back(message);
}

CodecParts StageMessages::parts_of(const Op& message) const {
  return message.phase == Phase::activation ? shape_->compressed.activations
                                            : shape_->compressed.gradients;
}

bool StageMessages::is_compressed(const Op& message) const {
  if (parts_of(message) == CodecParts::none) return false;
  const auto& chosen = shape_->compressed.gradient_messages;
  if (message.phase == Phase::activation || chosen.empty()) return true;
  const bool sent = message.kind == OpKind::send;
  // A gradient that part c p + s receives comes from the next part.
  const int sender = sent ? stage_ : (stage_ + 1) % shape_->stages;
  const int chunk = message.chunk + (!sent && stage_ == shape_->stages - 1 ? 1 : 0);
  return chosen[static_cast<std::size_t>(sender)]
               [static_cast<std::size_t>(chunk) * microbatches_ + message.microbatch];
}

}  // namespace windtunnel::detail
