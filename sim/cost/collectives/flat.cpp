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
  const bool is_tree = task.reduced_in_switch && task.work == RingWork::all_reduce;
  const NodeCrossing crossing = all_reduce_crossing(task.payload, members, nodes, is_tree);
  steps.latency = task.hop * (share * crossing.hops);
  steps.flows = edge_flows(layout, crossing.volume * (share * task.ranks_per_member));
  return steps;
}

namespace collectives {

CollectiveAlgorithm flat() { return {.name = "flat", .steps = flat_ring}; }

}  // namespace collectives
}  // namespace windtunnel
