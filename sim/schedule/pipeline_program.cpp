#include "schedule/pipeline_program.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

/// Passes between two exchanges; one, but for the pairs of a schedule with several chunks.
struct PassGroup {
  std::vector<Step> steps;
};

/// Writes one stage's ops. Every function appends O(1) ops.
class StageWriter {
 public:
  StageWriter(const PipelineShape& shape, const std::vector<Step>& order, StageId stage)
      : shape_(shape),
        stage_(static_cast<int>(stage.index())),
        m_(static_cast<std::uint32_t>(shape.microbatches)),
        splits_backward_(std::any_of(order.begin(), order.end(), [](const Step& step) {
          return step.phase == Phase::weight_gradient;
        })) {
    const bool ring = shape.chunks > 1;
    if (shape.stages > 1 && (stage_ + 1 < shape.stages || ring)) next_ = add_target(stage_ + 1);
    if (shape.stages > 1 && (stage_ > 0 || ring)) previous_ = add_target(stage_ - 1 + shape.stages);
    second_slots_ = 2 * m_ * static_cast<std::uint32_t>(shape.chunks);
    const bool two_parts = shape.compressed.activations == CodecParts::two ||
                           shape.compressed.gradients == CodecParts::two;
    program_.num_slots = (two_parts ? 2 : 1) * second_slots_;
    program_.num_collectives = num_collective_slots(shape.chunks);
    if (!shape.operations.empty()) {
      places_.emplace(shape.operations, directions_of(splits_backward_));
      program_.num_collectives += places_->num_slots();
      placed_.resize(shape.operations.size());
    }
    find_last_passes(order);
  }

  /// Where each chunk's gradients become complete: its last backward or weight gradient pass.
  void find_last_passes(const std::vector<Step>& order) {
    last_pass_.resize(static_cast<std::size_t>(shape_.chunks));
    for (const Step& step : order)
      if (step.phase != Phase::forward) last_pass_[step.chunk] = step;
  }

  void write_eager(const std::vector<Step>& order) {
    for (const Step& step : order) {
      for (const Op& op : receives({{step}})) add(Stream::compute, op);
      decode(step);
      compute(step);
      const Stream stream = encode(step);
      for (const Op& op : sends({{step}})) add(stream, op);
    }
  }

  void write_blocking(const std::vector<PassGroup>& groups) {
    exchange(receives(groups.front()));
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (const Step& step : groups[g].steps) decode(step);
      for (const Step& step : groups[g].steps) compute(step);
      for (const Step& step : groups[g].steps) encode_here(step);
      std::vector<Op> messages = sends(groups[g]);
      if (g + 1 < groups.size()) {
        const std::vector<Op> next = receives(groups[g + 1]);
        const bool shared = shape_.chunks > 1 ? !turns_around(groups[g], groups[g + 1])
                                              : same_neighbour(messages, next);
        if (!shared) {
          exchange(messages);
          messages.clear();
        }
        messages.insert(messages.end(), next.begin(), next.end());
      }
      exchange(messages);
    }
  }

  void write_tail() {
    if (shape_.gradient_reduction == GradientReduction::per_iteration) {
      if (overlaps_reduction())
        wait_for_buckets();
      else
        reduce_gradients();
    }
    if (shape_.embedding_sync && (stage_ == 0 || stage_ == shape_.stages - 1))
      device_collective(CollectiveSlot::embedding_sync, Phase::embedding_sync,
                        Traffic::embedding_sync);
    work(Phase::optimizer, row_of(DeviceRow::optimizer, shape_.chunks), {});
    if (shape_.parameter_gather) gather_parameters();
    work(Phase::overhead, row_of(DeviceRow::overhead, shape_.chunks), {});
  }

  StageProgram take() { return std::move(program_); }

  void reduce_gradients() {
    const auto reduce = [&](CollectiveSlot slot) {
      device_collective(slot, Phase::gradient_reduce, Traffic::data_gradients);
    };
    const CodecParts parts = shape_.compressed.reduced_gradients;
    if (parts == CodecParts::none) return reduce(CollectiveSlot::gradient_reduce);
    codec_work(Phase::encode, CodecRow::encode_reduced, Traffic::data_gradients);
    reduce(CollectiveSlot::gradient_reduce);
    if (parts == CodecParts::two) {
      codec_work(Phase::encode, CodecRow::encode_reduced_second, Traffic::data_gradients);
      reduce(CollectiveSlot::gradient_reduce_second);
    }
    codec_work(Phase::decode, CodecRow::decode_reduced, Traffic::data_gradients);
  }

  void gather_parameters() {
    const bool compressed = shape_.compressed.gathered_parameters != CodecParts::none;
    if (compressed) codec_work(Phase::encode, CodecRow::encode_gathered, Traffic::zero_gather);
    device_collective(CollectiveSlot::parameter_gather, Phase::parameter_gather,
                      Traffic::zero_gather);
    if (compressed) codec_work(Phase::decode, CodecRow::decode_gathered, Traffic::zero_gather);
  }

 private:
  std::uint8_t add_target(int stage) {
    program_.targets.push_back(StageId{stage % shape_.stages});
    return static_cast<std::uint8_t>(program_.targets.size() - 1);
  }

  bool first_part(const Step& step) const { return stage_ == 0 && step.chunk == 0; }
  bool last_part(const Step& step) const {
    return stage_ == shape_.stages - 1 && step.chunk == shape_.chunks - 1;
  }

  Op message(OpKind kind, Phase phase, const Step& step, int receiving_chunk) const {
    const bool activation = phase == Phase::activation;
    const auto list =
        static_cast<std::uint32_t>(activation ? receiving_chunk : shape_.chunks + receiving_chunk);
    Op op;
    op.kind = kind;
    op.phase = phase;
    op.traffic = activation ? Traffic::pipeline_forward : Traffic::pipeline_backward;
    op.peer = activation ? next_ : previous_;  // of a send; a receive has none
    op.chunk = step.chunk;
    op.work =
        static_cast<std::uint16_t>(activation ? MessageRow::activation : MessageRow::gradient);
    op.microbatch = step.microbatch;
    op.slot = list * m_ + step.microbatch;
    return op;
  }

  std::optional<Op> receive(const Step& step) const {
    if (step.phase == Phase::forward && !first_part(step))
      return message(OpKind::receive, Phase::activation, step, step.chunk);
    if (step.phase == Phase::backward && !last_part(step))
      return message(OpKind::receive, Phase::gradient, step, step.chunk);
    return std::nullopt;
  }
  std::optional<Op> send(const Step& step) const {
    const int wraps_up = stage_ == shape_.stages - 1, wraps_down = stage_ == 0;
    if (step.phase == Phase::forward && !last_part(step))
      return message(OpKind::send, Phase::activation, step, step.chunk + wraps_up);
    if (step.phase == Phase::backward && !first_part(step))
      return message(OpKind::send, Phase::gradient, step, step.chunk - wraps_down);
    return std::nullopt;
  }
  std::vector<Op> receives(const PassGroup& group) const {
    std::vector<Op> ops;
    for (const Step& step : group.steps)
      if (const auto op = receive(step)) add_parts(*op, ops);
    return ops;
  }
  std::vector<Op> sends(const PassGroup& group) const {
    std::vector<Op> ops;
    for (const Step& step : group.steps)
      if (const auto op = send(step)) add_parts(*op, ops);
    return ops;
  }

  /// The message, or the parts in which its codec sends it.
  void add_parts(Op op, std::vector<Op>& ops) const {
    const bool activation = op.phase == Phase::activation;
    if (!is_compressed(op)) return ops.push_back(op);
    op.work = static_cast<std::uint16_t>(activation ? MessageRow::encoded_activation
                                                    : MessageRow::encoded_gradient);
    ops.push_back(op);
    if (parts_of(op) == CodecParts::one) return;
    op.work = static_cast<std::uint16_t>(activation ? MessageRow::encoded_activation_second
                                                    : MessageRow::encoded_gradient_second);
    op.slot += second_slots_;
    ops.push_back(op);
  }

  CodecParts parts_of(const Op& message) const {
    return message.phase == Phase::activation ? shape_.compressed.activations
                                              : shape_.compressed.gradients;
  }

  bool is_compressed(const Op& message) const {
    if (parts_of(message) == CodecParts::none) return false;
    const auto& chosen = shape_.compressed.gradient_messages;
    if (message.phase == Phase::activation || chosen.empty()) return true;
    const bool sent = message.kind == OpKind::send;
    // A gradient that part c p + s receives comes from the next part.
    const int sender = sent ? stage_ : (stage_ + 1) % shape_.stages;
    const int chunk = message.chunk + (!sent && stage_ == shape_.stages - 1 ? 1 : 0);
    return chosen[static_cast<std::size_t>(sender)]
                 [static_cast<std::size_t>(chunk) * m_ + message.microbatch];
  }

  /// What runs on the codec for `step`, where its message is compressed.
  void codec(Stream stream, Phase phase, const Op& message) {
    const bool activation = message.phase == Phase::activation;
    const CodecRow row =
        phase == Phase::encode
            ? (activation ? CodecRow::encode_activation : CodecRow::encode_gradient)
            : (activation ? CodecRow::decode_activation : CodecRow::decode_gradient);
    codec_op(stream, phase, row_of(row, shape_.chunks), message.traffic,
             {Phase::forward, message.chunk, message.microbatch});
  }
  void codec_work(Phase phase, CodecRow row, Traffic traffic) {
    codec_op(Stream::compute, phase, row_of(row, shape_.chunks), traffic, {});
  }
  void codec_op(Stream stream, Phase phase, std::uint16_t row, Traffic traffic, const Step& step) {
    Op op;
    op.phase = phase;
    op.traffic = traffic;
    op.chunk = step.chunk;
    op.work = row;
    op.microbatch = step.microbatch;
    add(stream, op);
  }
  void decode(const Step& step) {
    const auto message = receive(step);
    if (message && is_compressed(*message)) codec(Stream::compute, Phase::decode, *message);
  }
  void encode_here(const Step& step) {
    const auto message = send(step);
    if (message && is_compressed(*message)) codec(Stream::compute, Phase::encode, *message);
  }
  /// Encodes the message of an eager pass; on which stream it is sent then.
  Stream encode(const Step& step) {
    const auto message = send(step);
    if (!message || !is_compressed(*message)) return Stream::compute;
    const CodecStream encoder = message->phase == Phase::activation
                                    ? shape_.compressed.activation_encoder
                                    : shape_.compressed.gradient_encoder;
    if (encoder == CodecStream::compute) {
      encode_here(step);
      return Stream::compute;
    }
    const std::uint32_t computed = new_event();
    event(Stream::compute, OpKind::record, computed, message->traffic);
    event(Stream::codec, OpKind::wait, computed, message->traffic);
    codec(Stream::codec, Phase::encode, *message);
    return Stream::codec;
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
  static bool turns_around(const PassGroup& group, const PassGroup& next) {
    return group.steps.back().phase == Phase::forward &&
           next.steps.front().phase == Phase::backward;
  }

  void exchange(const std::vector<Op>& messages) {
    if (messages.empty()) return;
    Op head = messages.front();
    head.kind = OpKind::exchange;
    head.slot = static_cast<std::uint32_t>(messages.size());
    add(Stream::compute, head);
    for (const Op& op : messages) add(Stream::compute, op);
  }

  bool overlaps_reduction() const { return !shape_.gradient_buckets.empty(); }

  /// Whether the gradients of the step's chunk are reduced in this pass.
  bool reduces(const Step& step) const {
    switch (shape_.gradient_reduction) {
      case GradientReduction::none:
        return false;
      case GradientReduction::per_iteration:
        return overlaps_reduction() && step == last_pass_[step.chunk];
      case GradientReduction::per_microbatch:
        return step.phase == (splits_backward_ ? Phase::weight_gradient : Phase::backward);
    }
    return false;
  }

  void compute(const Step& step) {
    if (!reduces(step)) return pass(step);
    if (overlaps_reduction()) return pass_in_pieces(step);
    pass(step);
    reduce_bucket(Stream::compute, step);
  }

  /// The pass in pieces, each followed by its bucket's reduction on the data stream.
  void pass_in_pieces(const Step& step) {
    const int pieces = shape_.gradient_buckets[step.chunk];
    for (int piece = 0; piece < pieces; ++piece) {
      work(step.phase, row_of(ChunkRow::last_piece, step.chunk), step);
      const std::uint32_t ready = new_event();
      event(Stream::compute, OpKind::record, ready, Traffic::data_gradients);
      event(Stream::data, OpKind::wait, ready, Traffic::data_gradients);
      reduce_bucket(Stream::data, step);
    }
    if (crosses_nodes() && step.phase == Phase::backward) exposed_collectives(step);
    if (shape_.gradient_reduction == GradientReduction::per_microbatch) wait_for_buckets();
  }

  void wait_for_buckets() {
    const std::uint32_t reduced = new_event();
    event(Stream::data, OpKind::record, reduced, Traffic::data_gradients);
    event(Stream::compute, OpKind::wait, reduced, Traffic::data_gradients);
  }

  void reduce_bucket(Stream stream, const Step& step) {
    const auto reduce = [&](ChunkCollective slot) {
      collective(stream, slot_of(slot, step.chunk), Phase::gradient_reduce, Traffic::data_gradients,
                 step);
    };
    const auto run = [&](Phase phase, BucketRow row) {
      codec_op(stream, phase, row_of(row, step.chunk, shape_.chunks), Traffic::data_gradients,
               step);
    };
    const CodecParts parts = shape_.compressed.reduced_gradients;
    if (parts == CodecParts::none) return reduce(ChunkCollective::bucket);
    run(Phase::encode, BucketRow::encode);
    reduce(ChunkCollective::bucket);
    if (parts == CodecParts::two) {
      run(Phase::encode, BucketRow::encode_second);
      reduce(ChunkCollective::bucket_second);
    }
    run(Phase::decode, BucketRow::decode);
  }

  void pass(const Step& step) {
    if (places_) {
      operations(step);
    } else if (step.phase == Phase::forward) {
      work(Phase::forward, row_of(ChunkRow::forward, step.chunk), step);
      if (crosses_nodes()) tensor_collective(Stream::compute, ChunkCollective::forward, step);
    } else if (step.phase == Phase::weight_gradient) {
      work(Phase::weight_gradient, row_of(ChunkRow::weight_gradient, step.chunk), step);
    } else if (splits_backward_) {
      work(Phase::backward, row_of(ChunkRow::input_gradient, step.chunk), step);
      if (crosses_nodes()) exposed_collectives(step);
    } else {
      work(Phase::backward, row_of(ChunkRow::backward, step.chunk), step);
      if (shape_.tensor == TensorCollectives::exposed) exposed_collectives(step);
      if (shape_.tensor == TensorCollectives::overlapped) overlapped_collectives(step);
    }
  }

  Direction direction_of(const Step& step) const {
    if (step.phase == Phase::forward) return Direction::forward;
    if (step.phase == Phase::weight_gradient) return Direction::weight_gradient;
    return splits_backward_ ? Direction::input_gradient : Direction::backward;
  }

  const PlacedPass& placed(const Step& step, Direction direction) {
    auto& placed = placed_[step.chunk][static_cast<std::size_t>(direction)];
    if (!placed) placed = place_operations(shape_.operations[step.chunk]->at(direction));
    return *placed;
  }

  /// Who waits for the end of which operation hears of it by an event.
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

  /// One pass operation by operation.
  void operations(const Step& step) {
    const Direction direction = direction_of(step);
    const PlacedPass& pass = placed(step, direction);
    Ends ends(pass);
    const auto traffic_of = [&](std::size_t number) {
      const PassOperations& operations = shape_.operations[step.chunk]->at(direction);
      return event_traffic(operations[pass.operations[number].number].label);
    };
    // A wait of kernels is for what they wait for; one of a collective's stream is counted nowhere.
    const auto wait_for = [&](Stream stream, int awaited, std::size_t waiter) {
      if (awaited == PlacedOperation::nothing) return;
      const auto number = static_cast<std::size_t>(awaited);
      event(stream, OpKind::wait, ends.event_of(number),
            traffic_of(stream == Stream::compute ? number : waiter));
    };
    for (std::size_t i = 0; i < pass.operations.size(); ++i) {
      const PlacedOperation& here = pass.operations[i];
      for (const int awaited : here.after) wait_for(here.stream, awaited, i);
      operation(step, direction, here);
      if (!ends.is_awaited(i)) continue;
      ends.event_of(i) = new_event();
      event(here.stream, OpKind::record, ends.event_of(i), traffic_of(i));
    }
    wait_for(Stream::compute, pass.awaited_at_end, 0);
  }

  /// What an event at the end of an operation stands for: gathers and scatters of a pass queue on one stream.
  static Traffic event_traffic(Label label) {
    return row_of(label).part == Part::data_comm ? Traffic::zero_gather
                                                 : Traffic::tensor_activations;
  }

  void operation(const Step& step, Direction direction, const PlacedOperation& placed) {
    const Label label = shape_.operations[step.chunk]->at(direction)[placed.number].label;
    const LabelRow& row = row_of(label);
    Op op;
    op.chunk = step.chunk;
    op.microbatch = step.microbatch;
    op.peer = static_cast<std::uint8_t>(label);
    op.traffic = row.traffic;
    op.phase = placed.stream == Stream::compute ? step.phase : phase_of(label);
    if (is_played_on_network(label, crosses_nodes())) {
      op.kind = OpKind::collective;
      op.phase = phase_of(label);
      op.slot = places_->slot(step.chunk, direction, placed.number);
      op.work = placed.layer;
    } else {
      op.work = places_->row(step.chunk, direction, placed);
      op.slot = placed.layer;
    }
    add(placed.stream, op);
  }

  static Phase phase_of(Label label) {
    if (is_of_tensor_group(label)) return Phase::tensor_reduce;
    return row_of(label).traffic == Traffic::zero_gather ? Phase::parameter_gather
                                                         : Phase::gradient_reduce;
  }

  bool crosses_nodes() const { return shape_.tensor != TensorCollectives::inside_compute; }

  void exposed_collectives(const Step& step) {
    tensor_collective(Stream::compute, ChunkCollective::exposed, step);
    tensor_collective(Stream::compute, ChunkCollective::backward, step);
  }

  void overlapped_collectives(const Step& step) {
    tensor_collective(Stream::compute, ChunkCollective::exposed, step);
    const std::uint32_t ready = new_event(), done = new_event();
    event(Stream::compute, OpKind::record, ready, Traffic::tensor_activations);
    event(Stream::tensor, OpKind::wait, ready, Traffic::tensor_activations);
    tensor_collective(Stream::tensor, ChunkCollective::backward, step);
    event(Stream::tensor, OpKind::record, done, Traffic::tensor_activations);
    work(Phase::backward, row_of(ChunkRow::backward_overlapped, step.chunk), step);
    event(Stream::compute, OpKind::wait, done, Traffic::tensor_activations);
  }

  void add(Stream stream, const Op& op) {
    program_.streams[static_cast<std::size_t>(stream)].push_back(op);
  }

  void work(Phase phase, std::uint16_t row, const Step& step) {
    Op op;
    op.phase = phase;
    op.chunk = step.chunk;
    op.work = row;
    op.microbatch = step.microbatch;
    add(Stream::compute, op);
  }

  void collective(Stream stream, std::uint32_t slot, Phase phase, Traffic traffic,
                  const Step& step) {
    Op op;
    op.kind = OpKind::collective;
    op.phase = phase;
    op.traffic = traffic;
    op.chunk = step.chunk;
    op.microbatch = step.microbatch;
    op.slot = slot;
    add(stream, op);
  }
  void device_collective(CollectiveSlot slot, Phase phase, Traffic traffic) {
    collective(Stream::compute, slot_of(slot), phase, traffic, {});
  }
  void tensor_collective(Stream stream, ChunkCollective which, const Step& step) {
    collective(stream, slot_of(which, step.chunk), Phase::tensor_reduce,
               Traffic::tensor_activations, step);
  }

  /// What an event stands for.
  static Phase phase_of(Traffic traffic) {
    if (traffic == Traffic::tensor_activations) return Phase::tensor_reduce;
    if (traffic == Traffic::zero_gather) return Phase::parameter_gather;
    return traffic == Traffic::data_gradients ? Phase::gradient_reduce : Phase::encode;
  }
  std::uint32_t new_event() { return program_.num_events++; }
  void event(Stream stream, OpKind kind, std::uint32_t number, Traffic traffic) {
    Op op;
    op.kind = kind;
    op.phase = phase_of(traffic);
    op.traffic = traffic;
    op.slot = number;
    add(stream, op);
  }

  PipelineShape shape_;
  int stage_;
  std::uint32_t m_;
  std::uint32_t second_slots_ = 0;  ///< where the second parts of messages begin
  bool splits_backward_;
  std::vector<Step> last_pass_;  ///< by chunk
  std::uint8_t next_ = 0, previous_ = 0;
  std::optional<OperationPlaces> places_;  ///< where passes are played operation by operation
  std::vector<std::array<std::optional<PlacedPass>, num_directions>> placed_;  ///< by chunk
  StageProgram program_;
};

/// Whether `order` alternates between the directions, instead of running all forwards before the first backward.
bool has_steady_phase(const std::vector<Step>& order) {
  return !std::is_partitioned(order.begin(), order.end(),
                              [](const Step& step) { return step.phase == Phase::forward; });
}

/// With one chunk each pass is a group of its own. With several, a forward and the backward right behind it are one group. Source:
/// forward_backward_pipelining_with_interleaving in megatron/schedules.py, the same loop in Megatron-LM v2.5 (August 2021) and at
/// commit 2514892 (October 2022): every steady iteration, the last included, runs both passes and then calls
/// send_forward_backward_recv_forward_backward once. Where all_warmup_microbatches is set there is no steady iteration.
std::vector<PassGroup> groups_of(const std::vector<Step>& order, int chunks) {
  const bool pairs = chunks > 1 && has_steady_phase(order);
  std::vector<PassGroup> groups;
  for (std::size_t i = 0; i < order.size(); ++i) {
    groups.push_back({{order[i]}});
    const bool pair = pairs && i + 1 < order.size() && order[i].phase == Phase::forward &&
                      order[i + 1].phase == Phase::backward;
    if (pair) groups.back().steps.push_back(order[++i]);
  }
  return groups;
}

}  // namespace

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
  // An op names its row in 16 bits. A thousand chunks (scenario/parallel_json.cpp) have some 44 rows each at most.
  WT_EXPECT(num_rows() <= std::numeric_limits<std::uint16_t>::max());
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
  WT_EXPECT(company < companies_);
  return static_cast<std::uint16_t>(
      first_row() + index(chunk, direction, operation.number) * companies_ + company);
}

std::uint32_t OperationPlaces::slot(int chunk, Direction direction, std::size_t number) const {
  return num_collective_slots(chunks_) + index(chunk, direction, number);
}

std::vector<Direction> directions_of(bool splits_backward) {
  if (splits_backward)
    return {Direction::forward, Direction::input_gradient, Direction::weight_gradient};
  return {Direction::forward, Direction::backward};
}

bool is_played_on_network(Label label, bool tensor_crosses_nodes) {
  if (!is_collective(row_of(label).kind) || label == Label::gather_message) return false;
  return is_of_tensor_group(label) ? tensor_crosses_nodes : true;
}

GradientReduction gradient_reduction(const Plan& plan) {
  if (plan.parallel.data == 1 || plan.parallel.zero_stage == 3) return GradientReduction::none;
  return plan.parallel.zero_stage == 2 ? GradientReduction::per_microbatch
                                       : GradientReduction::per_iteration;
}

bool reduces_by_chunk(const Plan& plan) {
  switch (gradient_reduction(plan)) {
    case GradientReduction::none:
      return false;
    case GradientReduction::per_iteration:
      return plan.parallel.overlap_gradient_reduce;
    case GradientReduction::per_microbatch:
      return true;
  }
  return false;
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
  WT_EXPECT(shape.operations.empty() || static_cast<int>(shape.operations.size()) == shape.chunks);
  StageWriter writer(shape, order, stage);
  if (shape.send == PipelineSend::eager)
    writer.write_eager(order);
  else
    writer.write_blocking(groups_of(order, shape.chunks));
  writer.write_tail();
  return writer.take();
}

}  // namespace windtunnel
