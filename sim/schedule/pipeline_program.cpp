#include "schedule/pipeline_program.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "core/interruption.hpp"
#include "plan/schedule.hpp"
#include "schedule/pass_groups.hpp"
#include "schedule/program.hpp"

namespace windtunnel {
namespace detail {
namespace {

Phase phase_of(Traffic traffic) {
  if (traffic == Traffic::tensor_activations) return Phase::tensor_reduce;
  if (traffic == Traffic::context) return Phase::context_exchange;
  if (traffic == Traffic::zero_gather) return Phase::parameter_gather;
  if (traffic == Traffic::expert_dispatch) return Phase::expert_exchange;
  return traffic == Traffic::data_gradients ? Phase::gradient_reduce : Phase::encode;
}

Op op_of(Phase phase, const Step& step) {
  Op op;
  op.phase = phase;
  op.chunk = step.chunk;
  op.microbatch = step.microbatch;
  return op;
}

/// Appends ops to the streams of a stage's program.
class OpWriter {
 public:
  void add(Stream stream, const Op& op) {
    constexpr std::size_t between_checks = 4096;
    if (ops(stream).size() % between_checks == 0) expect_not_interrupted();
    ops(stream).push_back(op);
  }

  /// A row of the work table on the stream of the kernels.
  void work(Phase phase, std::uint16_t row, const Step& step) {
    Op op = op_of(phase, step);
    op.work = row;
    add(Stream::compute, op);
  }

  /// An encoder or decoder.
  void codec(Stream stream, Phase phase, std::uint16_t row, Traffic traffic, const Step& step) {
    Op op = op_of(phase, step);
    op.traffic = traffic;
    op.work = row;
    add(stream, op);
  }

  void collective(Stream stream, std::uint32_t slot, Phase phase, Traffic traffic,
                  const Step& step) {
    Op op = op_of(phase, step);
    op.kind = OpKind::collective;
    op.traffic = traffic;
    op.slot = slot;
    add(stream, op);
  }

  /// Messages that are posted together, and end together.
  void exchange(const std::vector<Op>& messages) {
    if (messages.empty()) return;
    Op head = messages.front();
    head.kind = OpKind::exchange;
    head.slot = static_cast<std::uint32_t>(messages.size());
    add(Stream::compute, head);
    for (const Op& op : messages) add(Stream::compute, op);
  }

  std::uint32_t new_event() { return program_.num_events++; }
  /// `kind`: record or wait. The traffic is what the event stands for.
  void event(Stream stream, OpKind kind, std::uint32_t number, Traffic traffic) {
    Op op = op_of(phase_of(traffic), {});
    op.kind = kind;
    op.traffic = traffic;
    op.slot = number;
    add(stream, op);
  }

  /// `later` goes on when `earlier` has come so far.
  void order(Stream earlier, Stream later, Traffic traffic) {
    const std::uint32_t number = new_event();
    event(earlier, OpKind::record, number, traffic);
    event(later, OpKind::wait, number, traffic);
  }

  std::vector<Op>& ops(Stream stream) { return program_.streams[stream]; }
  StageProgram& program() { return program_; }
  StageProgram take() { return std::move(program_); }

 private:
  StageProgram program_;
};

/// The messages of one stage: what each of its passes receives and sends, in which of the slots, compressed or not. There is one
/// channel to each neighbour, for activations and gradients alike.
class StageMessages {
 public:
  /// Adds the stages that it sends to to `targets`.
  StageMessages(const PipelineShape& shape, StageId stage, std::vector<StageId>& targets)
      : shape_(&shape),
        stage_(stage),
        map_(shape.chunk_map()),
        neighbours_(neighbours_of(map_, stage, shape.chunks)),
        microbatches_(static_cast<std::uint32_t>(shape.microbatches)),
        second_slots_(2 * microbatches_ * static_cast<std::uint32_t>(shape.chunks)),
        up_(add_target(true, targets)),
        down_(add_target(false, targets)) {}

  /// Places in which messages arrive.
  std::uint32_t num_slots() const {
    const bool two_parts = shape_->compressed.activations == CodecParts::two ||
                           shape_->compressed.gradients == CodecParts::two;
    return (two_parts ? 2 : 1) * second_slots_;
  }

  /// The message that a pass receives or sends.
  std::optional<Op> message(OpKind kind, const Step& step) const {
    if (step.phase == Phase::weight_gradient) return std::nullopt;
    const Phase phase = step.phase == Phase::forward ? Phase::activation : Phase::gradient;
    const bool sends = kind == OpKind::send;
    const auto other = sends ? receiver(phase, step.chunk) : sender(phase, step.chunk);
    if (!other) return std::nullopt;
    return message(kind, phase, step, sends ? other->chunk : step.chunk);
  }

  /// Adds a message in the parts in which its codec sends it.
  void add_parts(Op message, std::vector<Op>& ops) const {
    const bool activation = message.phase == Phase::activation;
    if (!is_compressed(message)) return ops.push_back(message);
    message.work = static_cast<std::uint16_t>(activation ? MessageRow::encoded_activation
                                                         : MessageRow::encoded_gradient);
    ops.push_back(message);
    if (codec_parts(message) == CodecParts::one) return;
    message.work = static_cast<std::uint16_t>(activation ? MessageRow::encoded_activation_second
                                                         : MessageRow::encoded_gradient_second);
    message.slot += second_slots_;
    ops.push_back(message);
  }

  bool is_compressed(const Op& message) const {
    if (codec_parts(message) == CodecParts::none) return false;
    const auto& chosen = shape_->compressed.gradient_messages;
    if (message.phase == Phase::activation || chosen.empty()) return true;
    const ChunkPlace from = message.kind == OpKind::send ? ChunkPlace{stage_, message.chunk}
                                                         : *sender(message.phase, message.chunk);
    return chosen[from.stage.index()]
                 [static_cast<std::size_t>(from.chunk) * microbatches_ + message.microbatch];
  }

  /// True if any message may be compressed.
  bool compresses() const {
    return shape_->compressed.activations != CodecParts::none ||
           shape_->compressed.gradients != CodecParts::none;
  }

 private:
  /// The chunks before and behind one of this stage, where they are on another stage.
  struct Neighbours {
    std::optional<ChunkPlace> before, behind;
  };
  static std::vector<Neighbours> neighbours_of(const ChunkMap& map, StageId stage, int chunks) {
    const auto elsewhere = [stage](const std::optional<ChunkPlace>& place) {
      return place && place->stage != stage ? place : std::nullopt;
    };
    std::vector<Neighbours> neighbours;
    for (int chunk = 0; chunk < chunks; ++chunk)
      neighbours.push_back(
          {elsewhere(map.previous({stage, chunk})), elsewhere(map.next({stage, chunk}))});
    return neighbours;
  }

  /// The chunk that gets a chunk's activations or gradients, and the one that sends them to it.
  const std::optional<ChunkPlace>& receiver(Phase phase, int chunk) const {
    const Neighbours& neighbours = neighbours_[static_cast<std::size_t>(chunk)];
    return phase == Phase::activation ? neighbours.behind : neighbours.before;
  }

  const std::optional<ChunkPlace>& sender(Phase phase, int chunk) const {
    const Neighbours& neighbours = neighbours_[static_cast<std::size_t>(chunk)];
    return phase == Phase::activation ? neighbours.before : neighbours.behind;
  }

  /// True if a chunk sends towards higher stages, round from the last to the first.
  bool sends_up(Phase phase, int chunk) const {
    return map_.goes_up(chunk) == (phase == Phase::activation);
  }

  /// A channel to one of the neighbours, if any message goes there.
  std::uint8_t add_target(bool up, std::vector<StageId>& targets) const {
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

  Op message(OpKind kind, Phase phase, const Step& step, int receiving_chunk) const {
    const bool activation = phase == Phase::activation;
    const auto list =
        static_cast<std::uint32_t>(activation ? receiving_chunk : shape_->chunks + receiving_chunk);
    Op op;
    op.kind = kind;
    op.phase = phase;
    op.traffic = row_of(activation ? Label::activation_message : Label::gradient_message).traffic;
    op.peer = sends_up(phase, step.chunk) ? up_ : down_;  // of a send; a receive has none
    op.chunk = step.chunk;
    op.work =
        static_cast<std::uint16_t>(activation ? MessageRow::activation : MessageRow::gradient);
    op.microbatch = step.microbatch;
    op.slot = list * microbatches_ + step.microbatch;
    return op;
  }

  CodecParts codec_parts(const Op& message) const {
    return message.phase == Phase::activation ? shape_->compressed.activations
                                              : shape_->compressed.gradients;
  }

  const PipelineShape* shape_;
  StageId stage_;
  ChunkMap map_;
  std::vector<Neighbours> neighbours_;  ///< by chunk
  std::uint32_t microbatches_;
  std::uint32_t second_slots_;  ///< where the second parts of messages begin
  std::uint8_t up_, down_;      ///< channels to the neighbours, where there are any
};

/// Writes how the replicas of a stage reduce their gradients: at the end, in buckets during the backward pass that completes them, or on every
/// microbatch.
class ReductionWriter {
 public:
  ReductionWriter(const PipelineShape& shape, const std::vector<Step>& order, bool splits_backward)
      : shape_(&shape),
        splits_backward_(splits_backward),
        last_pass_(static_cast<std::size_t>(shape.chunks)) {
    for (const Step& step : order)
      if (step.phase != Phase::forward) last_pass_[step.chunk] = step;
  }

  /// True if gradients of the step's chunk are reduced in this pass.
  bool reduces(const Step& step) const {
    switch (shape_->gradient_reduction) {
      case GradientReduction::none:
        return false;
      case GradientReduction::per_iteration:
        return overlaps() && step == last_pass_[step.chunk];
      case GradientReduction::per_microbatch:
        return step.phase == (splits_backward_ ? Phase::weight_gradient : Phase::backward);
    }
    return false;
  }

  /// True if they are reduced during it, in buckets.
  bool overlaps() const {
    return !shape_->reductions.empty() && !shape_->reductions.front().empty() &&
           shape_->reductions.front().front().overlap == Overlap::trailing;
  }

  /// A pass in pieces, each followed by its bucket's reduction on the data stream.
  void pass_in_pieces(const Step& step, OpWriter& writer) const {
    for (int piece = 0; piece < shape_->gradient_buckets; ++piece) {
      writer.work(step.phase, row_of(ChunkRow::last_piece, step.chunk), step);
      reduce_bucket(piece, step, writer);
    }
  }

  /// Behind a piece: the reduction of its bucket on the data stream, for which the next piece's kernels have fewer multiprocessors.
  void reduce_bucket(int bucket, const Step& step, OpWriter& writer) const {
    if (bucket > 0) writer.work(step.phase, row_of(ChunkRow::reduction_slowdown, step.chunk), step);
    writer.order(Stream::compute, Stream::data, Traffic::data_gradients);
    reduce_chunk(Stream::data, step, writer);
  }

  /// The reduction of a chunk's gradients on this stream.
  void reduce_chunk(Stream stream, const Step& step, OpWriter& writer) const {
    for (const Operation& reduction : shape_->reductions[step.chunk])
      if (reduction.label == Label::reduce_shards)
        writer.collective(stream, slot_of(ReductionSlot::shards, {step.chunk}),
                          Phase::gradient_reduce, Traffic::data_gradients, step);
      else
        reduce(stream, {step.chunk, group_of(reduction.label) == GroupKind::expert_data}, step,
               writer);
  }

  void wait_for_buckets(OpWriter& writer) const {
    writer.order(Stream::data, Stream::compute, Traffic::data_gradients);
  }

  /// A reduction with its codec: encoded and reduced, in two parts where the codec has them, then decoded.
  void reduce(Stream stream, Reduction of, const Step& step, OpWriter& writer) const {
    const CodecParts parts =
        of.of_experts ? shape_->compressed.expert_gradients : shape_->compressed.reduced_gradients;
    const auto codec = [&](Phase phase, ReductionRow row) {
      if (parts != CodecParts::none)
        writer.codec(stream, phase, row_of(row, of, shape_->chunks), Traffic::data_gradients, step);
    };
    const auto collective = [&](ReductionSlot slot) {
      writer.collective(stream, slot_of(slot, of), Phase::gradient_reduce, Traffic::data_gradients,
                        step);
    };
    codec(Phase::encode, ReductionRow::encode);
    collective(ReductionSlot::first);
    if (parts == CodecParts::two) {
      codec(Phase::encode, ReductionRow::encode_second);
      collective(ReductionSlot::second);
    }
    codec(Phase::decode, ReductionRow::decode);
  }

  /// Behind the last pass: the whole reduction, or what is left of it.
  void at_end(OpWriter& writer) const {
    if (shape_->gradient_reduction != GradientReduction::per_iteration) return;
    if (overlaps()) return wait_for_buckets(writer);
    reduce(Stream::compute, {}, {}, writer);
  }

  /// Behind a step that has updated shards; of experts or of all else.
  void gather_parameters(OpWriter& writer, Label label) const {
    const bool experts = label == Label::gather_expert_parameters;
    const auto codec = [&](Phase phase, DeviceRow row) {
      if (shape_->compressed.gathered_parameters != CodecParts::none)
        writer.codec(Stream::compute, phase, row_of(row, shape_->chunks), Traffic::zero_gather, {});
    };
    codec(Phase::encode, experts ? DeviceRow::encode_gathered_experts : DeviceRow::encode_gathered);
    writer.collective(Stream::compute, end_place(label).slot, Phase::parameter_gather,
                      Traffic::zero_gather, {});
    codec(Phase::decode, experts ? DeviceRow::decode_gathered_experts : DeviceRow::decode_gathered);
  }

 private:
  const PipelineShape* shape_;
  bool splits_backward_;
  std::vector<Step> last_pass_;  ///< by chunk: where its gradients are complete
};

/// Operations of a pass that others wait for, and the event at the end of each.
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

/// Traffic that an event at the end of an operation belongs to: gathers and scatters of a pass queue on one stream.
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

/// Writes passes operation by operation.
class OperationWriter {
 public:
  /// `crosses_nodes`: collectives of tensor groups are simulated on the network.
  OperationWriter(const StageOperations& chunks, bool splits_backward, bool crosses_nodes)
      : chunks_(&chunks),
        splits_backward_(splits_backward),
        crosses_nodes_(crosses_nodes),
        places_(chunks, directions_of(splits_backward)),
        placed_(chunks.size()) {}

  std::uint32_t num_slots() const { return places_.num_slots(); }
  void pass(const Step& step, OpWriter& writer) {
    write(
        step.chunk, direction_of(step, splits_backward_),
        [&step](const Operation&) { return step; }, [](const PlacedOperation&) {}, writer);
  }

  /// A pass that reduces its chunk's gradients: each bucket on the data stream when its share of the layers has ended, the last when the pass has.
  void pass_with_buckets(const Step& step, int buckets, const ReductionWriter& reductions,
                         OpWriter& writer) {
    const int layers = (*chunks_)[step.chunk]->at(direction_of(step, splits_backward_)).layers;
    int reduced = 0;
    const auto reduce_to = [&](int bucket) {
      for (; reduced < bucket; ++reduced) reductions.reduce_bucket(reduced, step, writer);
    };
    write(
        step.chunk, direction_of(step, splits_backward_),
        [&step](const Operation&) { return step; },
        [&](const PlacedOperation& next) {
          if (next.stream == Stream::compute && next.layer > 1)
            reduce_to(buckets * (next.layer - 1) / layers);
        },
        writer);
    reduce_to(buckets);
  }

  /// A forward pass and the backward pass of the other chunk, at once.
  void block(std::span<const Step> block, OpWriter& writer) {
    const auto step_of = [block](const Operation& operation) {
      const auto number = static_cast<std::size_t>(operation.of) - 1;  // forward, then the halves
      WT_EXPECT(number < block.size());
      return block[number];
    };
    write(
        block.front().chunk, Direction::overlapped, step_of, [](const PlacedOperation&) {}, writer);
  }

 private:
  /// The operations of `direction` in a chunk; `step_of` says which pass each of them belongs to, `before` hears of each before it is written.
  template <class StepOf, class Before>
  void write(int chunk, Direction direction, const StepOf& step_of, const Before& before,
             OpWriter& writer) {
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

  const PlacedPass& placed(int chunk, Direction direction) {
    auto& placed = placed_[static_cast<std::size_t>(chunk)][direction];
    if (!placed)
      placed = place_operations((*chunks_)[static_cast<std::size_t>(chunk)]->at(direction));
    return *placed;
  }

  Op op_of(const Step& step, int chunk, Direction direction, const PlacedOperation& placed) const {
    const Label label =
        (*chunks_)[static_cast<std::size_t>(chunk)]->at(direction)[placed.number].label;
    Op op;
    op.chunk = step.chunk;
    op.microbatch = step.microbatch;
    op.peer = static_cast<std::uint8_t>(label);
    op.traffic = row_of(label).traffic;
    op.phase = placed.stream == Stream::compute ? step.phase : phase_of(label);
    if (is_simulated_on_network(label, crosses_nodes_)) {
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

  const StageOperations* chunks_;
  bool splits_backward_, crosses_nodes_;
  OperationPlaces places_;
  std::vector<EnumArray<Direction, std::optional<PlacedPass>>> placed_;  ///< by chunk
};

}  // namespace
}  // namespace detail
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
        const auto message = messages_.message(OpKind::receive, step);
        if (!message) continue;
        messages_.add_parts(*message, writer_.ops(Stream::compute));
        decode(*message);
      }
      compute_block(block);
      for (const Step& step : block)
        if (const auto message = messages_.message(OpKind::send, step))
          messages_.add_parts(*message, writer_.ops(encode(*message)));
    }
  }

  void write_blocking(const std::vector<PassGroup>& groups) {
    std::vector<Op> messages, next;
    add_messages(OpKind::receive, groups.front(), messages);
    writer_.exchange(messages);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (messages_.compresses())
        for_each_message(OpKind::receive, groups[g], [&](const Op& message) { decode(message); });
      for (const Step& step : groups[g]) compute(step);
      if (messages_.compresses())
        for_each_message(OpKind::send, groups[g], [&](const Op& message) { encode_here(message); });
      messages.clear();
      add_messages(OpKind::send, groups[g], messages);
      if (g + 1 < groups.size()) {
        next.clear();
        add_messages(OpKind::receive, groups[g + 1], next);
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
          reductions_.reduce(Stream::compute, {.of_experts = true}, {}, writer_);
          break;
        case Label::gather_parameters:
        case Label::broadcast_parameters:
        case Label::gather_expert_parameters:
          reductions_.gather_parameters(writer_, operation.label);
          break;
        default:
          if (operation.overlap == Overlap::trailing) break;  // with its bucket
          if (is_collective(row_of(operation.label).kind))
            writer_.collective(Stream::compute, place.slot, place.phase,
                               row_of(operation.label).traffic, {});
          else
            writer_.work(place.phase, row_of(place.row, shape_.chunks), {});
      }
    }
  }

  StageProgram take() { return writer_.take(); }

 private:
  /// Adds the codec's work for a message.
  void codec(Stream stream, Phase phase, const Op& message) {
    const bool activation = message.phase == Phase::activation;
    const DeviceRow row =
        phase == Phase::encode
            ? (activation ? DeviceRow::encode_activation : DeviceRow::encode_gradient)
            : (activation ? DeviceRow::decode_activation : DeviceRow::decode_gradient);
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

  template <class Visit>
  void for_each_message(OpKind kind, PassGroup group, const Visit& visit) const {
    for (const Step& step : group)
      if (const auto message = messages_.message(kind, step)) visit(*message);
  }
  void add_messages(OpKind kind, PassGroup group, std::vector<Op>& ops) const {
    for_each_message(kind, group, [&](const Op& message) { messages_.add_parts(message, ops); });
  }

  /// True if a message goes to, or comes from, the next stage.
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
        writer_.work(step.phase,
                     row_of(overlapped_row(direction_of(step, splits_backward_)), step.chunk),
                     step);
    }
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
    writer_.work(step.phase, row_of(row_of_pass(direction_of(step, splits_backward_)), step.chunk),
                 step);
  }

  const PipelineShape& shape_;
  StageId stage_;
  bool splits_backward_;
  detail::OpWriter writer_;
  detail::StageMessages messages_;
  detail::ReductionWriter reductions_;
  std::optional<detail::OperationWriter>
      operations_;  ///< where passes are simulated operation by operation
};

}  // namespace

EndPlace end_place(Label label) {
  switch (label) {
    case Label::reduce_gradients:
    case Label::scatter_gradients:
      return {.phase = Phase::gradient_reduce, .slot = slot_of(ReductionSlot::first, {})};
    case Label::reduce_shards:
      return {.phase = Phase::gradient_reduce, .slot = slot_of(ReductionSlot::shards, {})};
    case Label::synchronise_embedding:
      return {.phase = Phase::embedding_sync, .slot = slot_of(CollectiveSlot::embedding_sync)};
    case Label::optimizer_step:
      return {.phase = Phase::optimizer, .row = DeviceRow::optimizer};
    case Label::gather_parameters:
    case Label::broadcast_parameters:
      return {.phase = Phase::parameter_gather, .slot = slot_of(CollectiveSlot::parameter_gather)};
    case Label::reduce_expert_gradients:
    case Label::scatter_expert_gradients:
      return {.phase = Phase::gradient_reduce,
              .slot = slot_of(ReductionSlot::first, {.of_experts = true})};
    case Label::gather_expert_parameters:
      return {.phase = Phase::parameter_gather,
              .slot = slot_of(CollectiveSlot::expert_parameter_gather)};
    case Label::iteration_overhead:
      return {.phase = Phase::overhead, .row = DeviceRow::overhead};
    default:
      WT_UNREACHABLE();  // no operation of the end
  }
}

OperationPlaces::OperationPlaces(const StageOperations& chunks,
                                 const std::vector<Direction>& directions)
    : chunks_(static_cast<int>(chunks.size())), first_(chunks.size()) {
  constexpr std::uint32_t companies = 4;  // overlapped with a gather, a scatter, both or neither
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    for (const Direction direction : directions) {
      const PassOperations& pass = chunks[chunk]->at(direction);
      first_[chunk][direction] = size_;
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
  return first_[static_cast<std::size_t>(chunk)][direction] + static_cast<std::uint32_t>(number);
}

std::uint16_t OperationPlaces::row(int chunk, Direction direction,
                                   const PlacedOperation& operation) const {
  const std::uint32_t company =
      (operation.overlaps_gather ? 1U : 0U) + (operation.overlaps_scatter ? 2U : 0U);
  WT_EXPECT(company < companies_ && num_rows() <= most_rows);
  return static_cast<std::uint16_t>(
      first_row() + index(chunk, direction, operation.number) * companies_ + company);
}

std::uint32_t OperationPlaces::slot(int chunk, Direction direction, std::size_t number) const {
  return num_collective_slots(chunks_) + index(chunk, direction, number);
}

std::vector<int> reduced_chunks(const Plan& plan) {
  if (!reduces_by_chunk(plan)) return {at_the_end};
  std::vector<int> chunks(static_cast<std::size_t>(plan.parallel.virtual_pipeline));
  std::iota(chunks.begin(), chunks.end(), 0);
  return chunks;
}

Direction direction_of(const Step& step, bool splits_backward) {
  if (step.phase == Phase::forward) return Direction::forward;
  if (step.phase == Phase::weight_gradient) return Direction::weight_gradient;
  return splits_backward ? Direction::input_gradient : Direction::backward;
}

std::vector<Direction> directions_of(bool splits_backward) {
  if (splits_backward)
    return {Direction::forward, Direction::input_gradient, Direction::weight_gradient,
            Direction::overlapped};
  return {Direction::forward, Direction::backward};
}

bool is_simulated_on_network(Label label, bool tensor_crosses_nodes) {
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
