#include "schedule/op_writer.hpp"

#include "core/interruption.hpp"

namespace windtunnel::detail {
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

}  // namespace

void OpWriter::add(Stream stream, const Op& op) {
  constexpr std::size_t between_checks = 4096;
  if (ops(stream).size() % between_checks == 0) expect_not_interrupted();
  ops(stream).push_back(op);
}

void OpWriter::work(Phase phase, std::uint16_t row, const Step& step) {
  Op op = op_of(phase, step);
  op.work = row;
  add(Stream::compute, op);
}

void OpWriter::codec(Stream stream, Phase phase, std::uint16_t row, Traffic traffic,
                     const Step& step) {
  Op op = op_of(phase, step);
  op.traffic = traffic;
  op.work = row;
  add(stream, op);
}

void OpWriter::collective(Stream stream, std::uint32_t slot, Phase phase, Traffic traffic,
                          const Step& step) {
  Op op = op_of(phase, step);
  op.kind = OpKind::collective;
  op.traffic = traffic;
  op.slot = slot;
  add(stream, op);
}

void OpWriter::exchange(const std::vector<Op>& messages) {
  if (messages.empty()) return;
  Op head = messages.front();
  head.kind = OpKind::exchange;
  head.slot = static_cast<std::uint32_t>(messages.size());
  add(Stream::compute, head);
  for (const Op& op : messages) add(Stream::compute, op);
}

void OpWriter::event(Stream stream, OpKind kind, std::uint32_t number, Traffic traffic) {
  Op op = op_of(phase_of(traffic), {});
  op.kind = kind;
  op.traffic = traffic;
  op.slot = number;
  add(stream, op);
}

void OpWriter::order(Stream earlier, Stream later, Traffic traffic) {
  const std::uint32_t number = new_event();
  event(earlier, OpKind::record, number, traffic);
  event(later, OpKind::wait, number, traffic);
}

}  // namespace windtunnel::detail
