#include "schedule/operation_writer.hpp"

#include "core/contracts.hpp"

namespace windtunnel::detail {
namespace {

/// Which operations of a pass are awaited, and the event at the end of each of them.
class Ends {
 public:
  explicit Ends(const PlacedPass& pass)
      : awaited_(pass.operations.size()), event_of_(pass.operations.size()) {
    for (const PlacedOperation& operation : pass.operations)
      for (const int number : operation.after) await(number);
    await(pass.awaited_at_end);
  }
  bool is_awaited(std::size_t number) const { return awaited_[number] != 0; }
  std::uint32_t& event_of(std::size_t number) { return event_of_[number]; }

 private:
  void await(int number) {
    if (number != PlacedOperation::nothing) awaited_[static_cast<std::size_t>(number)] = 1;
  }
  std::vector<std::uint32_t> awaited_, event_of_;
};

/// What an event at the end of an operation stands for: gathers and scatters of a pass queue on one stream.
Traffic event_traffic(Label label) {
  if (row_of(label).part == Part::expert_comm) return Traffic::expert_dispatch;
  if (row_of(label).part == Part::context_comm) return Traffic::context;
  return row_of(label).part == Part::data_comm ? Traffic::zero_gather : Traffic::tensor_activations;
}

Phase phase_of(Label label) {
  if (is_of_tensor_group(label)) return Phase::tensor_reduce;
  if (row_of(label).part == Part::expert_comm) return Phase::expert_exchange;
  if (row_of(label).part == Part::context_comm) return Phase::context_exchange;
  return row_of(label).traffic == Traffic::zero_gather ? Phase::parameter_gather
                                                       : Phase::gradient_reduce;
}

}  // namespace

OperationWriter::OperationWriter(const StageOperations& chunks, bool splits_backward,
                                 bool crosses_nodes)
    : chunks_(&chunks),
      splits_backward_(splits_backward),
      crosses_nodes_(crosses_nodes),
      places_(chunks, directions_of(splits_backward)),
      placed_(chunks.size()) {}

Direction OperationWriter::direction_of(const Step& step) const {
  if (step.phase == Phase::forward) return Direction::forward;
  if (step.phase == Phase::weight_gradient) return Direction::weight_gradient;
  return splits_backward_ ? Direction::input_gradient : Direction::backward;
}

const PlacedPass& OperationWriter::placed(int chunk, Direction direction) {
  auto& placed = placed_[static_cast<std::size_t>(chunk)][static_cast<std::size_t>(direction)];
  if (!placed)
    placed = place_operations((*chunks_)[static_cast<std::size_t>(chunk)]->at(direction));
  return *placed;
}

void OperationWriter::pass(const Step& step, OpWriter& writer) {
  play(
      step.chunk, direction_of(step), [&step](const Operation&) { return step; },
      [](const PlacedOperation&) {}, writer);
}

void OperationWriter::pass_with_buckets(const Step& step, int buckets,
                                        const ReductionWriter& reductions, OpWriter& writer) {
  const int layers = (*chunks_)[step.chunk]->at(direction_of(step)).layers;
  int reduced = 0;
  const auto reduce_to = [&](int bucket) {
    for (; reduced < bucket; ++reduced) {
      writer.order(Stream::compute, Stream::data, Traffic::data_gradients);
      reductions.reduce_chunk(Stream::data, step, writer);
    }
  };
  play(
      step.chunk, direction_of(step), [&step](const Operation&) { return step; },
      [&](const PlacedOperation& next) {
        if (next.stream == Stream::compute && next.layer > 1)
          reduce_to(buckets * (next.layer - 1) / layers);
      },
      writer);
  reduce_to(buckets);
}

void OperationWriter::block(std::span<const Step> block, OpWriter& writer) {
  const auto step_of = [block](const Operation& operation) {
    const auto number = static_cast<std::size_t>(operation.of) - 1;  // forward, then the halves
    WT_EXPECT(number < block.size());
    return block[number];
  };
  play(
      block.front().chunk, Direction::overlapped, step_of, [](const PlacedOperation&) {}, writer);
}

template <class StepOf, class Before>
void OperationWriter::play(int chunk, Direction direction, const StepOf& step_of,
                           const Before& before, OpWriter& writer) {
  const PlacedPass& pass = placed(chunk, direction);
  const PassOperations& operations = (*chunks_)[static_cast<std::size_t>(chunk)]->at(direction);
  Ends ends(pass);
  const auto traffic_of = [&](std::size_t number) {
    return event_traffic(operations[pass.operations[number].number].label);
  };
  // A wait of kernels is for what they wait for; one of a collective's stream is counted nowhere.
  const auto wait_for = [&](Stream stream, int awaited, std::size_t waiter) {
    if (awaited == PlacedOperation::nothing) return;
    const auto number = static_cast<std::size_t>(awaited);
    writer.event(stream, OpKind::wait, ends.event_of(number),
                 traffic_of(stream == Stream::compute ? number : waiter));
  };
  for (std::size_t i = 0; i < pass.operations.size(); ++i) {
    const PlacedOperation& here = pass.operations[i];
    before(here);
    for (const int awaited : here.after) wait_for(here.stream, awaited, i);
    writer.add(here.stream, op_of(step_of(operations[here.number]), chunk, direction, here));
    if (!ends.is_awaited(i)) continue;
    ends.event_of(i) = writer.new_event();
    writer.event(here.stream, OpKind::record, ends.event_of(i), traffic_of(i));
  }
  wait_for(Stream::compute, pass.awaited_at_end, 0);
}

Op OperationWriter::op_of(const Step& step, int chunk, Direction direction,
                          const PlacedOperation& placed) const {
  const Label label =
      (*chunks_)[static_cast<std::size_t>(chunk)]->at(direction)[placed.number].label;
  Op op;
  op.chunk = step.chunk;
  op.microbatch = step.microbatch;
  op.peer = static_cast<std::uint8_t>(label);
  op.traffic = row_of(label).traffic;
  op.phase = placed.stream == Stream::compute ? step.phase : phase_of(label);
  if (is_played_on_network(label, crosses_nodes_)) {
    op.kind = OpKind::collective;
    op.phase = phase_of(label);
    op.slot = places_.slot(chunk, direction, placed.number);
    op.work = placed.layer;
  } else {
    op.work = places_.row(chunk, direction, placed);
    op.slot = placed.layer;
  }
  return op;
}

}  // namespace windtunnel::detail
