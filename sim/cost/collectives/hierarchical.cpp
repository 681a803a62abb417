#include "cost/collective_algorithm.hpp"
#include "cost/collective_cost.hpp"

namespace windtunnel::collectives {
namespace {

CollectiveSteps steps(const CollectiveTask& task) {
  const RingLayout& layout = *task.layout;
  const int nodes = layout.num_nodes();
  CollectiveSteps steps = flat_ring(task);
  if (nodes == 1 || nodes == layout.num_members()) return steps;
  const double share = share_of(task.work);
  steps.fixed = Seconds{0};
  steps.latency = task.in_node(task.payload, RingWork::scatter_or_gather) * (2 * share) +
                  task.hop * (share * ring_all_reduce_crossings(nodes, nodes));
  const Bytes volume =
      ring_all_reduce_volume(task.payload, nodes) * (share * task.ranks_per_member);
  steps.flows.clear();
  for (const RingEdge& edge : layout.edges)
    steps.flows.push_back({edge.from, edge.to, volume * edge.share});
  return steps;
}

}  // namespace

/// Scattered inside each node, all-reduced between the n nodes shard by shard, gathered inside: one after the other (the 2D-torus
/// all-reduce of Mikami et al., arXiv 1811.05233, section 2.2, with nodes as rows):
///   T = 2 gather(payload, in node) + 2 (n-1) hops + 2 (n-1)/n * payload over a node's NICs
/// A reduce-scatter or all-gather is half of it. The number of bytes sent is that of the flat ring: 2 (N-1) payload.
CollectiveAlgorithm hierarchical() { return {.name = "hierarchical", .steps = steps}; }

}  // namespace windtunnel::collectives
