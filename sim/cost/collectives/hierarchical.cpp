#include <cmath>

#include "cost/collective_algorithm.hpp"
#include "cost/collective_cost.hpp"

namespace windtunnel::collectives {
namespace {

CollectiveSteps steps(const CollectiveTask& task) {
  const RingLayout& layout = *task.layout;
  const int nodes = layout.num_nodes();
  if (nodes == 1 || nodes == std::lround(layout.num_members() * task.copies_per_member))
    return flat_collective(task);
  const double share = share_of(task.work);
  CollectiveSteps steps;
  steps.algorithm = "hierarchical";
  steps.traffic = ring_traffic(task);
  steps.latency = task.hop * (share * ring_all_reduce_crossings(nodes, nodes));
  for (const RingKind half : {RingKind::reduce_scatter, RingKind::all_gather})
    if (task.work == half || task.work == RingKind::all_reduce)
      steps.latency += task.in_node(task.payload, half);
  const double rings = task.ranks_per_member / task.copies_per_member;
  steps.flows = edge_flows(layout, ring_all_reduce_volume(task.payload, nodes) * (share * rings));
  return steps;
}

}  // namespace

/// Scattered inside each node, all-reduced between the n nodes shard by shard, gathered inside: one after the other (the 2D-torus
/// all-reduce of Mikami et al., arXiv 1811.05233, section 2.2, with nodes as rows):
///   T = 2 gather(payload, in node) + 2 (n-1) hops + 2 (n-1)/n * payload over a node's NICs
/// A reduce-scatter or all-gather is half of it. The number of bytes sent is that of the flat ring: 2 (N-1) payload.
CollectiveAlgorithm hierarchical() { return {.name = "hierarchical", .steps = steps}; }

}  // namespace windtunnel::collectives
