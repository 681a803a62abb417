#include "schedule/pipeline_program.hpp"

#include <algorithm>
#include <optional>
#include <span>

#include "core/contracts.hpp"
#include "schedule/operation_writer.hpp"
#include "schedule/pass_groups.hpp"
#include "schedule/reduction_writer.hpp"
#include "schedule/stage_messages.hpp"

namespace windtunnel {
namespace {

/// Writes one stage's ops. Every function appends O(1) ops.
class StageWriter {
 public:
  StageWriter(const PipelineShape& shape, const std::vector<Step>& order, StageId stage)
      : shape_(shape),
        stage_(stage),
        splits_backward_(
            std::any_of(order.begin(), order.end(),
                        [](const Step& step) { return step.phase == Phase::weight_gradient; })),
        messages_(shape_, stage, writer_.program().targets),
        reductions_(shape_, order, splits_backward_) {
    writer_.program().num_slots = messages_.num_slots();
    writer_.program().num_collectives = num_collective_slots(shape.chunks);
    if (shape_.operations.empty()) return;
    operations_.emplace(shape_.operations, splits_backward_, shape_.tensor_crosses_nodes);
    writer_.program().num_collectives += operations_->num_slots();
  }

  void write_eager(const std::vector<Step>& order) {
    for (std::size_t first = 0, end = 0; first < order.size(); first = end) {
      end = end_of_block(order, first);
      const std::span<const Step> block(&order[first], end - first);
      for (const Step& step : block) {
        const auto message = messages_.receive(step);
        if (!message) continue;
        messages_.add_parts(*message, writer_.ops(Stream::compute));
        decode(*message);
      }
      compute_block(block);
      for (const Step& step : block)
        if (const auto message = messages_.send(step))
          messages_.add_parts(*message, writer_.ops(encode(*message)));
    }
  }

  void write_blocking(const std::vector<PassGroup>& groups) {
    std::vector<Op> messages, next;
    add_receives(groups.front(), messages);
    writer_.exchange(messages);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (messages_.compresses()) decode_received(groups[g]);
      for (const Step& step : groups[g]) compute(step);
      if (messages_.compresses()) encode_sent(groups[g]);
      messages.clear();
      add_sends(groups[g], messages);
      if (g + 1 < groups.size()) {
        next.clear();
        add_receives(groups[g + 1], next);
        const bool shared = shape_.chunks > 1 ? !turns_around(groups[g], groups[g + 1])
                                              : same_neighbour(messages, next);
        if (!shared) {
          writer_.exchange(messages);
          messages.clear();
        }
        messages.insert(messages.end(), next.begin(), next.end());
      }
      writer_.exchange(messages);
    }
  }

  void write_end() {
    for (const Operation& operation : shape_.end) {
      const EndPlace place = end_place(operation.label);
      switch (operation.label) {
        case Label::reduce_gradients:
        case Label::scatter_gradients:
          reductions_.at_end(writer_);
          break;
        case Label::reduce_expert_gradients:
        case Label::scatter_expert_gradients:
          reductions_.experts_at_end(writer_);
          break;
        case Label::gather_parameters:
        case Label::gather_expert_parameters:
          reductions_.gather_parameters(writer_, operation.label);
          break;
        default:
          if (is_collective(row_of(operation.label).kind))
            writer_.collective(Stream::compute, slot_of(place.slot), place.phase,
                               row_of(operation.label).traffic, {});
          else
            writer_.work(place.phase, row_of(place.row, shape_.chunks), {});
      }
    }
  }

  StageProgram take() { return writer_.take(); }

 private:
  /// What runs on the codec for a message.
  void codec(Stream stream, Phase phase, const Op& message) {
    const bool activation = message.phase == Phase::activation;
    const CodecRow row =
        phase == Phase::encode
            ? (activation ? CodecRow::encode_activation : CodecRow::encode_gradient)
            : (activation ? CodecRow::decode_activation : CodecRow::decode_gradient);
    writer_.codec(stream, phase, row_of(row, shape_.chunks), message.traffic,
                  {Phase::forward, message.chunk, message.microbatch});
  }
  void decode(const Op& message) {
    if (messages_.is_compressed(message)) codec(Stream::compute, Phase::decode, message);
  }
  void encode_here(const Op& message) {
    if (messages_.is_compressed(message)) codec(Stream::compute, Phase::encode, message);
  }
  /// Encodes the message of an eager pass; on which stream it is sent then.
  Stream encode(const Op& message) {
    if (!messages_.is_compressed(message)) return Stream::compute;
    const CodecStream encoder = message.phase == Phase::activation
                                    ? shape_.compressed.activation_encoder
                                    : shape_.compressed.gradient_encoder;
    if (encoder == CodecStream::compute) {
      encode_here(message);
      return Stream::compute;
    }
    writer_.order(Stream::compute, Stream::codec, message.traffic);
    codec(Stream::codec, Phase::encode, message);
    return Stream::codec;
  }

  void decode_received(PassGroup group) {
    for (const Step& step : group)
      if (const auto message = messages_.receive(step)) decode(*message);
  }
  void encode_sent(PassGroup group) {
    for (const Step& step : group)
      if (const auto message = messages_.send(step)) encode_here(*message);
  }

  void add_receives(PassGroup group, std::vector<Op>& ops) const {
    for (const Step& step : group)
      if (const auto message = messages_.receive(step)) messages_.add_parts(*message, ops);
  }
  void add_sends(PassGroup group, std::vector<Op>& ops) const {
    for (const Step& step : group)
      if (const auto message = messages_.send(step)) messages_.add_parts(*message, ops);
  }

  /// Whether a message goes to, or comes from, the next stage.
  static bool with_next(const Op& op) {
    return (op.kind == OpKind::send) == (op.phase == Phase::activation);
  }
  static bool same_neighbour(const std::vector<Op>& sent, const std::vector<Op>& received) {
    return sent.empty() || received.empty() ||
           with_next(sent.front()) == with_next(received.front());
  }
  /// Between the last forward and the first backward of an order without pairs, Megatron-LM's interleaved loop finishes the send,
  /// then calls recv_backward.
  static bool turns_around(PassGroup group, PassGroup next) {
    return group.back().phase == Phase::forward && next.front().phase == Phase::backward;
  }

  /// At once where passes of both directions are in the block, and none reduces gradients; otherwise one after the other.
  void compute_block(std::span<const Step> block) {
    const bool both = block.front().phase == Phase::forward && block.size() > 1;
    const bool reduces = std::any_of(
        block.begin(), block.end(), [this](const Step& step) { return reductions_.reduces(step); });
    if (!both || reduces || !shape_.overlaps_passes) {
      for (const Step& step : block) compute(step);
    } else if (operations_) {
      operations_->block(block, writer_);
    } else {
      for (const Step& step : block)
        writer_.work(step.phase, row_of(overlapped_row(step.phase), step.chunk), step);
    }
  }
  static ChunkRow overlapped_row(Phase phase) {
    if (phase == Phase::forward) return ChunkRow::overlapped_forward;
    return phase == Phase::backward ? ChunkRow::overlapped_input_gradient
                                    : ChunkRow::overlapped_weight_gradient;
  }

  void compute(const Step& step) {
    if (!reductions_.reduces(step)) return pass(step);
    if (!reductions_.overlaps()) {
      pass(step);
      return reductions_.reduce_chunk(Stream::compute, step, writer_);
    }
    if (shape_.tensor_crosses_nodes)
      operations_->pass_with_buckets(step, shape_.gradient_buckets, reductions_, writer_);
    else
      reductions_.pass_in_pieces(step, writer_);
    if (shape_.gradient_reduction == GradientReduction::per_microbatch)
      reductions_.wait_for_buckets(writer_);
  }

  void pass(const Step& step) {
    if (operations_) return operations_->pass(step, writer_);
    writer_.work(step.phase, row_of(row_of_pass(step.phase), step.chunk), step);
  }
  ChunkRow row_of_pass(Phase phase) const {
    if (phase == Phase::forward) return ChunkRow::forward;
    if (phase == Phase::weight_gradient) return ChunkRow::weight_gradient;
    return splits_backward_ ? ChunkRow::input_gradient : ChunkRow::backward;
  }

  const PipelineShape& shape_;
  StageId stage_;
  bool splits_backward_;
  detail::OpWriter writer_;
  detail::StageMessages messages_;
  detail::ReductionWriter reductions_;
  std::optional<detail::OperationWriter>
      operations_;  ///< where passes are played operation by operation
};

}  // namespace

EndPlace end_place(Label label) {
  switch (label) {
    case Label::reduce_gradients:
    case Label::scatter_gradients:
      return {.phase = Phase::gradient_reduce, .slot = CollectiveSlot::gradient_reduce};
    case Label::synchronise_embedding:
      return {.phase = Phase::embedding_sync, .slot = CollectiveSlot::embedding_sync};
    case Label::optimizer_step:
      return {.phase = Phase::optimizer, .row = DeviceRow::optimizer};
    case Label::gather_parameters:
      return {.phase = Phase::parameter_gather, .slot = CollectiveSlot::parameter_gather};
    case Label::reduce_expert_gradients:
    case Label::scatter_expert_gradients:
      return {.phase = Phase::gradient_reduce, .slot = CollectiveSlot::expert_gradient_reduce};
    case Label::gather_expert_parameters:
      return {.phase = Phase::parameter_gather, .slot = CollectiveSlot::expert_parameter_gather};
    case Label::iteration_overhead:
      return {.phase = Phase::overhead, .row = DeviceRow::overhead};
    default:
      WT_UNREACHABLE();  // no operation of the end
  }
}

OperationPlaces::OperationPlaces(const StageOperations& chunks,
                                 const std::vector<Direction>& played)
    : chunks_(static_cast<int>(chunks.size())), first_(chunks.size()) {
  constexpr std::uint32_t companies = 4;  // beside a gather, a scatter, both or neither
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    for (const Direction direction : played) {
      const PassOperations& pass = chunks[chunk]->at(direction);
      first_[chunk][static_cast<std::size_t>(direction)] = size_;
      size_ += static_cast<std::uint32_t>(pass.size());
      for (const Operation& operation : pass.layer)
        if (row_of(operation.label).part == Part::data_comm) companies_ = companies;
    }
  }
}

std::uint32_t OperationPlaces::first_row() const { return num_work_rows(chunks_, true); }
std::uint32_t OperationPlaces::num_rows() const { return first_row() + size_ * companies_; }
std::uint32_t OperationPlaces::num_slots() const { return size_; }

std::uint32_t OperationPlaces::index(int chunk, Direction direction, std::size_t number) const {
  return first_[static_cast<std::size_t>(chunk)][static_cast<std::size_t>(direction)] +
         static_cast<std::uint32_t>(number);
}

std::uint16_t OperationPlaces::row(int chunk, Direction direction,
                                   const PlacedOperation& operation) const {
  const std::uint32_t company =
      (operation.beside_gather ? 1U : 0U) + (operation.beside_scatter ? 2U : 0U);
  WT_EXPECT(company < companies_ && num_rows() <= most_rows);
  return static_cast<std::uint16_t>(
      first_row() + index(chunk, direction, operation.number) * companies_ + company);
}

std::uint32_t OperationPlaces::slot(int chunk, Direction direction, std::size_t number) const {
  return num_collective_slots(chunks_) + index(chunk, direction, number);
}

std::vector<Direction> directions_of(bool splits_backward) {
  if (splits_backward)
    return {Direction::forward, Direction::input_gradient, Direction::weight_gradient,
            Direction::overlapped};
  return {Direction::forward, Direction::backward};
}

bool is_played_on_network(Label label, bool tensor_crosses_nodes) {
  if (!is_collective(row_of(label).kind) || label == Label::gather_message) return false;
  const GroupKind group = group_of(label);
  if (group == GroupKind::expert_tensor) return false;  // part of one device
  return group == GroupKind::tensor ? tensor_crosses_nodes : true;
}

std::vector<bool> epilogue_passes(const std::vector<Step>& order, const OrderShape& shape) {
  const auto m = static_cast<std::size_t>(shape.microbatches);
  std::vector<bool> passes(m * static_cast<std::size_t>(shape.chunks));
  for (auto step = order.rbegin(); step != order.rend() && step->phase != Phase::forward; ++step)
    if (step->phase == Phase::backward) passes[step->chunk * m + step->microbatch] = true;
  return passes;
}

StageProgram make_pipeline_program(const PipelineShape& shape, const std::vector<Step>& order,
                                   StageId stage) {
  WT_EXPECT(shape.microbatches > 0 && shape.chunks > 0 && !order.empty());
  WT_EXPECT(static_cast<int>(stage.index()) < shape.stages);
  WT_EXPECT(shape.chunks == 1 || shape.stages > 1);
  WT_EXPECT(!shape.overlaps_passes || (shape.chunks == 2 && shape.send == PipelineSend::eager));
  WT_EXPECT(shape.operations.empty() || static_cast<int>(shape.operations.size()) == shape.chunks);
  StageWriter writer(shape, order, stage);
  if (shape.send == PipelineSend::eager)
    writer.write_eager(order);
  else
    writer.write_blocking(pass_groups(order, shape.chunks));
  writer.write_end();
  return writer.take();
}

}  // namespace windtunnel
