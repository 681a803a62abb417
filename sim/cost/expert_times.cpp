#include "cost/expert_times.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/contracts.hpp"
#include "cost/collective_cost.hpp"

namespace windtunnel {
namespace {

/// Times in which the ranks of an expert tensor group gather or scatter `payload`, inside nodes and between them. They are neighbours, in
/// one node or filling several.
std::array<Seconds, 2> cut_expert_times(const StageCostInputs& in, Bytes payload) {
  const int ranks = in.plan->parallel.expert_tensor;
  std::vector<int> gpus(static_cast<std::size_t>(std::min(ranks, in.node->gpus)));
  std::iota(gpus.begin(), gpus.end(), 0);
  const Seconds inside = in_node_ring(in.node->interconnect, gpus, payload, RingKind::all_gather);
  if (ranks <= in.node->gpus) return {inside, Seconds{0}};
  const double share = static_cast<double>(ranks - 1) / ranks;
  return {inside, payload * (share * in.node->gpus) /
                          (in.node->effective_nic_rate() * static_cast<double>(in.node->nics)) +
                      in.fabric->latency + in.fabric->collective_latency};
}

bool moves_tokens(GroupKind group) {
  return group == GroupKind::experts || group == GroupKind::expert_tensor;
}

/// The times at a draw of an operation that takes `a` at the least load and `b` at the most. More tokens never take less time: where tiles
/// of products make it look so between the two loads, the time is that of the mean load.
std::array<TimeByFullness, 2> times_between(std::array<Seconds, 2> mean, std::array<Seconds, 2> a,
                                            std::array<Seconds, 2> b, const TimedLoads& loads) {
  const double fullness = (loads.most - loads.least) / loads.mean;
  std::array<TimeByFullness, 2> times{};
  for (std::size_t i = 0; i < times.size(); ++i)
    times[i] = {mean[i], std::max(b[i] - a[i], Seconds{0}) / fullness};
  return times;
}

std::array<TimeByFullness, 2> times_of(const StageCostInputs& in, const TimedLoads& loads,
                                       const Operation& operation, Seconds least, Seconds most) {
  if (!moves_tokens(group_of(operation.label)))
    return times_between({operation.time, {}}, {least, {}}, {most, {}}, loads);
  Operation alone = operation;
  alone.payload = operation.payload / operation.share;
  const auto at = [&](double load) {
    std::array<Seconds, 2> times = expert_collective_times(in, alone, load);
    for (Seconds& time : times) time *= operation.share;
    return times;
  };
  return times_between(at(loads.mean), at(loads.least), at(loads.most), loads);
}

}  // namespace

double expert_load_of(const StageCostInputs& in) {
  if (in.expert_load) return *in.expert_load;
  return expert_load(*in.model->moe, in.plan->parallel.expert).slowest;
}

std::array<Seconds, 2> expert_collective_times(const StageCostInputs& in,
                                               const Operation& operation, double load) {
  const ExpertDispatch dispatch = experts_of(in).dispatch;
  const Bytes payload = operation.payload * exchanged_load(dispatch, load);
  if (group_of(operation.label) == GroupKind::expert_tensor) return cut_expert_times(in, payload);
  const TokenCopies copies = token_copies(*in.model->moe, in.experts, dispatch);
  const ExchangeTime time = exchange_time(exchange_bytes(payload, copies, in.experts, dispatch),
                                          in.experts, *in.node, *in.fabric);
  return {time.fixed, time.latency + time.nics};
}

bool TimedLoads::differ() const {
  constexpr double rounding = 1e-9;
  return most - least > rounding * mean;
}

TimedLoads timed_loads(const StageCostInputs& in) {
  if (!in.model->moe) return {};
  const std::vector<double> draws = expert_loads(*in.model->moe, in.plan->parallel.expert);
  if (draws.empty()) return {};
  const auto [least, most] = std::minmax_element(draws.begin(), draws.end());
  return {expert_load(*in.model->moe, in.plan->parallel.expert).slowest, *least, *most};
}

void set_times_by_fullness(const StageCostInputs& in, const TimedLoads& loads,
                           const ChunkOperations& at_least, const ChunkOperations& at_most,
                           ChunkOperations& operations) {
  for (std::size_t i = 0; i < operations.passes.size(); ++i) {
    PassOperations& pass = operations.passes[i];
    const PassOperations &least = at_least.passes[i], &most = at_most.passes[i];
    WT_EXPECT(pass.size() == least.size() && pass.size() == most.size());
    std::size_t number = 0;
    pass.for_each([&](Operation& operation) {
      operation.by_fullness = times_of(in, loads, operation, least[number].time, most[number].time);
      ++number;
    });
  }
}

}  // namespace windtunnel
