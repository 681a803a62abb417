#include "schedule/stage_messages.hpp"

namespace windtunnel::detail {

StageMessages::StageMessages(const PipelineShape& shape, StageId stage,
                             std::vector<StageId>& targets)
    : shape_(&shape),
      stage_(stage),
      map_(shape.chunk_map()),
      neighbours_(neighbours_of(map_, stage, shape.chunks)),
      microbatches_(static_cast<std::uint32_t>(shape.microbatches)),
      second_slots_(2 * microbatches_ * static_cast<std::uint32_t>(shape.chunks)),
      up_(add_target(true, targets)),
      down_(add_target(false, targets)) {}

std::uint8_t StageMessages::add_target(bool up, std::vector<StageId>& targets) const {
  for (int chunk = 0; chunk < shape_->chunks; ++chunk) {
    for (const Phase phase : {Phase::activation, Phase::gradient}) {
      const auto to = receiver(phase, chunk);
      if (!to || sends_up(phase, chunk) != up) continue;
      targets.push_back(to->stage);
      return static_cast<std::uint8_t>(targets.size() - 1);
    }
  }
  return 0;
}

std::vector<StageMessages::Neighbours> StageMessages::neighbours_of(const ChunkMap& map,
                                                                    StageId stage, int chunks) {
  const auto elsewhere = [stage](const std::optional<ChunkPlace>& place) {
    return place && place->stage != stage ? place : std::nullopt;
  };
  std::vector<Neighbours> neighbours;
  for (int chunk = 0; chunk < chunks; ++chunk)
    neighbours.push_back(
        {elsewhere(map.previous({stage, chunk})), elsewhere(map.next({stage, chunk}))});
  return neighbours;
}

const std::optional<ChunkPlace>& StageMessages::receiver(Phase phase, int chunk) const {
  const Neighbours& neighbours = neighbours_[static_cast<std::size_t>(chunk)];
  return phase == Phase::activation ? neighbours.behind : neighbours.before;
}
const std::optional<ChunkPlace>& StageMessages::sender(Phase phase, int chunk) const {
  const Neighbours& neighbours = neighbours_[static_cast<std::size_t>(chunk)];
  return phase == Phase::activation ? neighbours.before : neighbours.behind;
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
  op.traffic = row_of(activation ? Label::activation_message : Label::gradient_message).traffic;
  op.peer = sends_up(phase, step.chunk) ? up_ : down_;  // of a send; a receive has none
  op.chunk = step.chunk;
  op.work = static_cast<std::uint16_t>(activation ? MessageRow::activation : MessageRow::gradient);
  op.microbatch = step.microbatch;
  op.slot = list * microbatches_ + step.microbatch;
  return op;
}

std::optional<Op> StageMessages::receive(const Step& step) const {
  if (step.phase == Phase::weight_gradient) return std::nullopt;
  const Phase phase = step.phase == Phase::forward ? Phase::activation : Phase::gradient;
  if (!sender(phase, step.chunk)) return std::nullopt;
  return message(OpKind::receive, phase, step, step.chunk);
}

std::optional<Op> StageMessages::send(const Step& step) const {
  if (step.phase == Phase::weight_gradient) return std::nullopt;
  const Phase phase = step.phase == Phase::forward ? Phase::activation : Phase::gradient;
  const auto to = receiver(phase, step.chunk);
  if (!to) return std::nullopt;
  return message(OpKind::send, phase, step, to->chunk);
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
  const ChunkPlace from = message.kind == OpKind::send ? ChunkPlace{stage_, message.chunk}
                                                       : *sender(message.phase, message.chunk);
  return chosen[from.stage.index()]
               [static_cast<std::size_t>(from.chunk) * microbatches_ + message.microbatch];
}

}  // namespace windtunnel::detail
