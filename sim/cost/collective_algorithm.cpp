#include "cost/collective_algorithm.hpp"

#include "core/contracts.hpp"
#include "cost/collective_cost.hpp"

namespace windtunnel {

namespace collectives {
#define WT_COLLECTIVE(name) CollectiveAlgorithm name();
#include "cost/collectives.def"
#undef WT_COLLECTIVE
}  // namespace collectives

double share_of(RingWork work) { return work == RingWork::all_reduce ? 1.0 : 0.5; }

Bytes ring_traffic(const CollectiveTask& task) {
  const int members = task.layout->num_members();
  const auto ranks = static_cast<int>(members * task.copies_per_member);
  const Bytes volume =
      ring_all_reduce_volume(task.payload, ranks) * (share_of(task.work) * task.ranks_per_member);
  return volume * static_cast<double>(members);
}

std::vector<MemberFlow> edge_flows(const RingLayout& layout, Bytes volume) {
  std::vector<MemberFlow> flows;
  flows.reserve(layout.edges.size());
  for (const RingEdge& edge : layout.edges)
    flows.push_back({edge.from, edge.to, volume * edge.share});
  return flows;
}

Seconds in_node_ring(const Interconnect& wires, const std::vector<int>& gpus, Bytes payload,
                     RingWork work) {
  return work == RingWork::all_reduce ? in_node_all_reduce(wires, gpus, payload)
                                      : in_node_all_gather(wires, gpus, payload);
}

const std::vector<CollectiveAlgorithm>& collective_algorithms() {
  static const std::vector<CollectiveAlgorithm> table{
#define WT_COLLECTIVE(name) collectives::name(),
#include "cost/collectives.def"
#undef WT_COLLECTIVE
  };
  return table;
}

const CollectiveAlgorithm& collective_algorithm(std::string_view name) {
  for (const CollectiveAlgorithm& algorithm : collective_algorithms())
    if (algorithm.name == name) return algorithm;
  WT_UNREACHABLE();
}

}  // namespace windtunnel
