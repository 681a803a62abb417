#include "search/stage_exchanges.hpp"

#include <algorithm>

namespace windtunnel {

StageExchanges::StageExchanges(const Plan& plan, const std::vector<Step>& order, StageId stage)
    : plan_(plan), stage_(static_cast<int>(stage.index())) {
  if (plan.parallel.pipeline_send == PipelineSend::blocking_pairs &&
      plan.parallel.schedule->chunk_path == ChunkPath::loop)
    count(order);
}

void StageExchanges::count(const std::vector<Step>& order) {
  const auto last_backward = std::find_if(
      order.rbegin(), order.rend(), [](const Step& step) { return step.phase == Phase::backward; });
  const Step* const last = &*last_backward;
  const std::vector<PassGroup> groups = pass_groups(order, plan_.parallel.virtual_pipeline);
  for (std::size_t next = 1; next < groups.size() && groups[next].data() <= last; ++next) {
    const std::size_t before = sent(groups[next - 1]).index();
    const std::size_t behind = received(groups[next]).index();
    is_sent_[before] = is_received_[behind] = true;
    ++exchanges_[before][behind];
  }
}

StageExchanges::Messages StageExchanges::sent(PassGroup group) const {
  const int last_stage = plan_.parallel.pipeline - 1;
  const int last_chunk = plan_.parallel.virtual_pipeline - 1;
  Messages messages;
  for (const Step& step : group) {
    if (step.phase == Phase::forward)
      messages.activation = stage_ != last_stage || step.chunk != last_chunk;
    if (step.phase == Phase::backward) messages.gradient = stage_ != 0 || step.chunk != 0;
  }
  return messages;
}

StageExchanges::Messages StageExchanges::received(PassGroup group) const {
  const int last_stage = plan_.parallel.pipeline - 1;
  const int last_chunk = plan_.parallel.virtual_pipeline - 1;
  Messages messages;
  for (const Step& step : group) {
    if (step.phase == Phase::forward) messages.activation = stage_ != 0 || step.chunk != 0;
    if (step.phase == Phase::backward)
      messages.gradient = stage_ != last_stage || step.chunk != last_chunk;
  }
  return messages;
}

Seconds StageExchanges::least(const LeastTimes& times, int replica, int part) const {
  const int stages = plan_.parallel.pipeline;
  const auto device = [&](int stage) {
    return plan_.device(replica, StageId{stage % stages}, part);
  };
  const DeviceId here = device(stage_), next = device(stage_ + 1),
                 previous = device(stage_ + stages - 1);
  const auto time = [&](std::size_t messages, const StageMessage& activation,
                        const StageMessage& gradient) {
    if (messages == 0) return Seconds{0};
    if (messages == Messages{true, true}.index()) return times.both(activation, gradient);
    return times.message(messages == Messages{true, false}.index() ? activation : gradient);
  };
  std::array<Seconds, kinds> to_send{}, to_receive{};
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    if (is_sent_[kind])
      to_send[kind] =
          time(kind, {here, next, MessageRow::activation}, {here, previous, MessageRow::gradient});
    if (is_received_[kind])
      to_receive[kind] =
          time(kind, {previous, here, MessageRow::activation}, {next, here, MessageRow::gradient});
  }
  Seconds all{};
  for (std::size_t sent = 0; sent < kinds; ++sent)
    for (std::size_t received = 0; received < kinds; ++received)
      all += std::max(to_send[sent], to_receive[received]) *
             static_cast<double>(exchanges_[sent][received]);
  return all;
}

}  // namespace windtunnel
