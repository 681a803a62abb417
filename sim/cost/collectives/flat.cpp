#include <cmath>

#include "cost/collective_algorithm.hpp"
#include "cost/collective_cost.hpp"

namespace windtunnel {

CollectiveSteps flat_ring(const CollectiveTask& task) {
  const RingLayout& layout = *task.layout;
  const int members = layout.num_members(), nodes = layout.num_nodes();
  CollectiveSteps steps;
  steps.traffic = ring_traffic(task);
  if (nodes == 1) {
    if (task.reduced_in_switch && task.work == RingWork::all_reduce) steps.algorithm = "NVLS";
    steps.fixed = task.in_node(task.payload, task.work);
    return steps;
  }
  const double share = share_of(task.work);
  const int ranks = static_cast<int>(std::lround(members * task.copies_per_member));
  const double rings = task.ranks_per_member / task.copies_per_member;
  NodeCrossing crossing;
  if (task.work == RingWork::all_reduce && !task.is_always_ring) {
    const auto in_node = [&](Bytes payload) { return task.in_node(payload, RingWork::all_reduce); };
    crossing = all_reduce_crossing({task.payload, ranks, nodes, task.reduced_in_switch,
                                    task.node_rate() / rings, task.hop, task.hop_in_node, in_node});
  } else {
    crossing = {"ring", ring_all_reduce_volume(task.payload, ranks),
                ring_all_reduce_latency(ranks, nodes, task.hop, task.hop_in_node),
                task.in_node(task.payload, task.work)};
  }
  steps.algorithm = crossing.algorithm;
  steps.fixed = crossing.in_node;
  steps.latency = crossing.latency * share;
  steps.flows = edge_flows(layout, crossing.volume * (share * rings));
  return steps;
}

namespace collectives {

CollectiveAlgorithm flat() { return {.name = "flat", .steps = flat_ring}; }

}  // namespace collectives
}  // namespace windtunnel
