#include "cost/collective_algorithm.hpp"
#include "cost/collective_cost.hpp"

namespace windtunnel {

CollectiveSteps flat_ring(const CollectiveTask& task) {
  const RingLayout& layout = *task.layout;
  const int members = layout.num_members(), nodes = layout.num_nodes();
  const Bytes volume =
      ring_all_reduce_volume(task.payload, members) * (share_of(task.work) * task.ranks_per_member);
  CollectiveSteps steps;
  steps.fixed = task.in_node(task.payload, task.work);
  steps.traffic = volume * static_cast<double>(members);
  if (nodes == 1) return steps;
  steps.latency = task.hop * (share_of(task.work) * ring_all_reduce_crossings(members, nodes));
  for (const RingEdge& edge : layout.edges)
    steps.flows.push_back({edge.from, edge.to, volume * edge.share});
  return steps;
}

namespace collectives {

CollectiveAlgorithm flat() { return {.name = "flat", .steps = flat_ring}; }

}  // namespace collectives
}  // namespace windtunnel
