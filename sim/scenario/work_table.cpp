#include "scenario/work_table.hpp"

#include <algorithm>
#include <utility>

namespace windtunnel {
namespace {

Work work_of(const PassCost& pass) {
  Work work;
  work.duration = pass.duration;
  work.parts[static_cast<std::size_t>(Part::compute)] = pass.compute;
  work.parts[static_cast<std::size_t>(Part::tensor_comm)] = pass.tensor_comm;
  work.parts[static_cast<std::size_t>(Part::data_comm)] = pass.data_comm;
  work.parts[static_cast<std::size_t>(Part::codec)] = pass.codec;
  work.parts[static_cast<std::size_t>(Part::other)] = pass.floor_share();
  return work;
}

Work piece_of(Work work, int pieces) {
  work.duration = work.duration / static_cast<double>(pieces);
  for (Seconds& part : work.parts) part = part / static_cast<double>(pieces);
  return work;
}

/// The backward pass cut in two: what runs before the overlapped collectives, and what runs beside them.
std::pair<Work, Work> split_backward(const ChunkCost& cost) {
  const Seconds beside = std::min(cost.backward_cross.hidden_behind, cost.backward.compute);
  PassCost before = cost.backward;
  before.compute -= beside;
  before.duration -= beside;
  return {work_of(before), work_of(beside, Part::compute)};
}

/// A layer, slowed by the collectives beside it.
Work layer_work(const ShardedTimes& times, int gathers, int scatters) {
  ShardedOperation layer;
  layer.work = ShardedWork::layer;
  layer.gathers = static_cast<std::uint8_t>(gathers);
  layer.scatters = static_cast<std::uint8_t>(scatters);
  Work work;
  work.duration = duration_of(layer, times);
  work.parts[static_cast<std::size_t>(Part::compute)] = times.layer;
  work.parts[static_cast<std::size_t>(Part::data_comm)] = work.duration - times.layer;
  return work;
}

/// What a pass does beside its layers and their collectives.
Work edges_work(const PassCost& pass, const ShardedTimes& times, int layers) {
  PassCost rest = pass;
  rest.compute -= times.layer * layers;
  rest.data_comm = Seconds{0};
  rest.duration = times.edges;
  return work_of(rest);
}

}  // namespace

std::vector<Work> sharded_work_table(const ChunkCost& cost) {
  const ShardedTimes &forward = cost.sharded_forward, &backward = cost.sharded_backward;
  return {edges_work(cost.forward, forward, cost.layers),
          layer_work(forward, 0, 0),
          layer_work(forward, 1, 0),
          edges_work(cost.backward, backward, cost.layers),
          layer_work(backward, 0, 0),
          layer_work(backward, 1, 0),
          layer_work(backward, 0, 1),
          layer_work(backward, 1, 1)};
}

Work work_of(Seconds duration, Part part) {
  Work work;
  work.duration = duration;
  work.parts[static_cast<std::size_t>(part)] = duration;
  return work;
}

std::vector<Work> work_table(const StageCost& cost, const Plan& plan,
                             const SoftwareProfile& software, int buckets) {
  const bool splits = plan.parallel.schedule->splits_backward;
  std::vector<Work> rows;
  for (const ChunkCost& chunk : cost.chunks) {
    const auto [before, beside] = split_backward(chunk);
    rows.push_back(work_of(chunk.forward));
    rows.push_back(before);
    rows.push_back(beside);
    rows.push_back(work_of(chunk.input_gradient));
    rows.push_back(work_of(chunk.weight_gradient));
    rows.push_back(piece_of(work_of(splits ? chunk.weight_gradient : chunk.backward), buckets));
  }
  rows.push_back(work_of(cost.optimizer, Part::optimizer));
  rows.push_back(work_of(software.iteration_overhead, Part::other));
  return rows;
}

}  // namespace windtunnel
