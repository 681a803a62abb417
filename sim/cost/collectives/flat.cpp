#include "cost/collective_algorithm.hpp"
#include "cost/collective_cost.hpp"

namespace windtunnel {

CollectiveSteps flat_ring(const CollectiveTask& task) {
  const RingLayout& layout = *task.layout;
  const int members = layout.num_members(), nodes = layout.num_nodes();
  const double share = share_of(task.work);
  CollectiveSteps steps;
  steps.fixed = task.in_node(task.payload, task.work);
  steps.traffic = ring_traffic(task);
  if (nodes == 1) return steps;
  steps.latency = task.hop * (share * ring_all_reduce_crossings(members, nodes));
  steps.flows = edge_flows(
      layout, ring_all_reduce_volume(task.payload, members) * (share * task.ranks_per_member));
  return steps;
}

namespace collectives {

CollectiveAlgorithm flat() { return {.name = "flat", .steps = flat_ring}; }

}  // namespace collectives
}  // namespace windtunnel
