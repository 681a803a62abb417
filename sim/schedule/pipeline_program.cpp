#include "schedule/pipeline_program.hpp"

#include <algorithm>
#include <initializer_list>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

/// Writes one stage's ops. Every function appends O(1) ops.
class StageWriter {
 public:
  StageWriter(const PipelineShape& shape, StageId stage)
      : shape_(shape),
        stage_(static_cast<int>(stage.index())),
        m_(static_cast<std::uint32_t>(shape.microbatches)) {
    if (has_next()) program_.targets.push_back(StageId{stage_ + 1});
    if (has_previous()) program_.targets.push_back(StageId{stage_ - 1});
    program_.num_slots = 2 * m_;
    program_.num_collectives = num_collective_slots;
  }

  /// A message this stage sends or receives; none where there is no neighbour.
  struct Message {
    OpKind kind;
    Phase phase;
    std::uint32_t microbatch;
  };
  Message receive_activation(std::uint32_t i) const {
    return {OpKind::receive, Phase::activation, i};
  }
  Message send_activation(std::uint32_t i) const { return {OpKind::send, Phase::activation, i}; }
  Message receive_gradient(std::uint32_t i) const { return {OpKind::receive, Phase::gradient, i}; }
  Message send_gradient(std::uint32_t i) const { return {OpKind::send, Phase::gradient, i}; }

  void forward(std::uint32_t i) {
    compute(Phase::forward, WorkRow::forward, i);
    if (shape_.tensor != TensorCollectives::inside_compute)
      tensor_collective(Stream::compute, CollectiveSlot::tensor_forward, i);
  }

  void backward(std::uint32_t i) {
    compute(Phase::backward, WorkRow::backward, i);
    if (shape_.tensor == TensorCollectives::inside_compute) return;
    tensor_collective(Stream::compute, CollectiveSlot::tensor_exposed, i);
    if (shape_.tensor == TensorCollectives::exposed) {
      tensor_collective(Stream::compute, CollectiveSlot::tensor_backward, i);
      return;
    }
    const std::uint32_t ready = new_event(), done = new_event();
    event(Stream::compute, OpKind::record, ready);
    event(Stream::tensor, OpKind::wait, ready);
    tensor_collective(Stream::tensor, CollectiveSlot::tensor_backward, i);
    event(Stream::tensor, OpKind::record, done);
    compute(Phase::backward, WorkRow::backward_overlapped, i);
    event(Stream::compute, OpKind::wait, done);
  }

  /// The messages in order, each on its own.
  void pass(Message message) {
    if (exists(message)) add(Stream::compute, op_of(message));
  }
  /// The messages posted together; nothing when none of them exists.
  void exchange(std::initializer_list<Message> messages) {
    const auto count = std::count_if(messages.begin(), messages.end(),
                                     [this](const Message& m) { return exists(m); });
    if (count == 0) return;
    Op head;
    head.kind = OpKind::exchange;
    head.phase = messages.begin()->phase;
    head.microbatch = messages.begin()->microbatch;
    head.slot = static_cast<std::uint32_t>(count);
    add(Stream::compute, head);
    for (const Message& message : messages) pass(message);
  }

  void tail() {
    if (shape_.gradient_reduce)
      collective(CollectiveSlot::gradient_reduce, Phase::gradient_reduce, Traffic::data_gradients);
    if (shape_.embedding_sync && (!has_next() || !has_previous()))
      collective(CollectiveSlot::embedding_sync, Phase::embedding_sync, Traffic::embedding_sync);
    compute(Phase::optimizer, WorkRow::optimizer, 0);
    compute(Phase::overhead, WorkRow::overhead, 0);
  }

  std::uint32_t microbatches() const { return m_; }
  std::uint32_t warm_up() const {
    return static_cast<std::uint32_t>(std::min(shape_.stages - stage_ - 1, shape_.microbatches));
  }
  bool blocking() const { return shape_.send == PipelineSend::blocking_pairs; }
  StageProgram take() { return std::move(program_); }

 private:
  bool has_next() const { return stage_ + 1 < shape_.stages; }
  bool has_previous() const { return stage_ > 0; }
  bool towards_next(const Message& message) const {
    return (message.kind == OpKind::send) == (message.phase == Phase::activation);
  }
  bool exists(const Message& message) const {
    return towards_next(message) ? has_next() : has_previous();
  }

  void add(Stream stream, const Op& op) {
    program_.streams[static_cast<std::size_t>(stream)].push_back(op);
  }

  Op op_of(const Message& message) const {
    const bool activation = message.phase == Phase::activation;
    Op op;
    op.kind = message.kind;
    op.phase = message.phase;
    op.traffic = activation ? Traffic::pipeline_forward : Traffic::pipeline_backward;
    op.peer = towards_next(message) || !has_next() ? 0 : 1;
    op.work =
        static_cast<std::uint16_t>(activation ? MessageRow::activation : MessageRow::gradient);
    op.microbatch = message.microbatch;
    op.slot = activation ? message.microbatch : m_ + message.microbatch;
    return op;
  }

  void compute(Phase phase, WorkRow row, std::uint32_t microbatch) {
    Op op;
    op.phase = phase;
    op.work = static_cast<std::uint16_t>(row);
    op.microbatch = microbatch;
    add(Stream::compute, op);
  }

  void collective(CollectiveSlot slot, Phase phase, Traffic traffic,
                  Stream stream = Stream::compute, std::uint32_t microbatch = 0) {
    Op op;
    op.kind = OpKind::collective;
    op.phase = phase;
    op.traffic = traffic;
    op.microbatch = microbatch;
    op.slot = static_cast<std::uint32_t>(slot);
    add(stream, op);
  }
  void tensor_collective(Stream stream, CollectiveSlot slot, std::uint32_t microbatch) {
    collective(slot, Phase::tensor_reduce, Traffic::tensor_activations, stream, microbatch);
  }

  std::uint32_t new_event() { return program_.num_events++; }
  void event(Stream stream, OpKind kind, std::uint32_t number) {
    Op op;
    op.kind = kind;
    op.phase = Phase::tensor_reduce;
    op.traffic = Traffic::tensor_activations;
    op.slot = number;
    add(stream, op);
  }

  PipelineShape shape_;
  int stage_;
  std::uint32_t m_;
  StageProgram program_;
};

void forward_step(StageWriter& writer, std::uint32_t i) {
  if (writer.blocking())
    writer.exchange({writer.receive_activation(i)});
  else
    writer.pass(writer.receive_activation(i));
  writer.forward(i);
  if (writer.blocking())
    writer.exchange({writer.send_activation(i)});
  else
    writer.pass(writer.send_activation(i));
}

void backward_step(StageWriter& writer, std::uint32_t i) {
  if (writer.blocking())
    writer.exchange({writer.receive_gradient(i)});
  else
    writer.pass(writer.receive_gradient(i));
  writer.backward(i);
  if (writer.blocking())
    writer.exchange({writer.send_gradient(i)});
  else
    writer.pass(writer.send_gradient(i));
}

void write_gpipe(StageWriter& writer) {
  for (std::uint32_t i = 0; i < writer.microbatches(); ++i) forward_step(writer, i);
  for (std::uint32_t i = writer.microbatches(); i-- > 0;) backward_step(writer, i);
}

/// The steady state of Megatron-LM's blocking exchanges: send_forward with recv_backward,
/// send_backward with recv_forward.
void write_blocking_steady_state(StageWriter& writer, std::uint32_t warm_up, std::uint32_t pairs) {
  if (pairs == 0) return;
  writer.exchange({writer.receive_activation(warm_up)});
  for (std::uint32_t k = 0; k < pairs; ++k) {
    writer.forward(warm_up + k);
    writer.exchange({writer.send_activation(warm_up + k), writer.receive_gradient(k)});
    writer.backward(k);
    if (k + 1 < pairs)
      writer.exchange({writer.send_gradient(k), writer.receive_activation(warm_up + k + 1)});
    else
      writer.exchange({writer.send_gradient(k)});
  }
}

void write_one_f_one_b(StageWriter& writer) {
  const std::uint32_t warm_up = writer.warm_up(), pairs = writer.microbatches() - warm_up;
  for (std::uint32_t i = 0; i < warm_up; ++i) forward_step(writer, i);
  if (writer.blocking()) {
    write_blocking_steady_state(writer, warm_up, pairs);
  } else {
    for (std::uint32_t k = 0; k < pairs; ++k) {
      forward_step(writer, warm_up + k);
      backward_step(writer, k);
    }
  }
  for (std::uint32_t i = pairs; i < writer.microbatches(); ++i) backward_step(writer, i);
}

}  // namespace

StageProgram make_pipeline_program(const PipelineShape& shape, StageId stage) {
  WT_EXPECT(shape.microbatches > 0);
  WT_EXPECT(static_cast<int>(stage.index()) < shape.stages);
  WT_EXPECT(shape.schedule == Schedule::gpipe || shape.schedule == Schedule::one_f_one_b);
  StageWriter writer(shape, stage);
  if (shape.schedule == Schedule::gpipe)
    write_gpipe(writer);
  else
    write_one_f_one_b(writer);
  writer.tail();
  return writer.take();
}

}  // namespace windtunnel
