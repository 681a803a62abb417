#include "cost/collective_algorithm.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <numeric>

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

CollectiveTask collective_task(const Platform& platform, const CollectiveMembers& members,
                               Bytes payload, RingWork work, double copies) {
  CollectiveTask task;
  task.work = work;
  task.payload = payload;
  task.ranks_per_member = static_cast<double>(members.gpus_of(0).size());
  task.copies_per_member = copies;
  task.layout = &members.layout;
  task.hop = platform.fabric.collective_latency;
  task.hop_in_node = hop_in_node(members.type_of(0).interconnect);
  const std::vector<std::vector<std::size_t>>& by_node = members.layout.by_node;
  task.reduced_in_switch = std::all_of(by_node.begin(), by_node.end(), [&](const auto& here) {
    return members.type_of(here.front()).interconnect.reduces_in_switch;
  });
  task.in_node = [&members, copies](Bytes bytes, RingWork part) {
    Seconds longest{};
    for (const std::vector<std::size_t>& here : members.layout.by_node) {
      std::vector<int> gpus;
      for (const std::size_t member : here) {
        const std::vector<int>& all = members.gpus_of(member);
        const auto taking_part = static_cast<std::ptrdiff_t>(std::ceil(copies));
        gpus.insert(gpus.end(), all.begin(), all.begin() + std::min(taking_part, std::ssize(all)));
      }
      const Interconnect& wires = members.type_of(here.front()).interconnect;
      longest =
          std::max(longest, part == RingWork::all_reduce ? in_node_all_reduce(wires, gpus, bytes)
                                                         : in_node_all_gather(wires, gpus, bytes));
    }
    return longest;
  };
  task.exit = [&platform, &members] { return slowest_exit(platform, members); };
  return task;
}

std::vector<MemberFlow> exchange_flows(const CollectiveMembers& members, Bytes sent_away,
                                       const Fabric& fabric) {
  const std::vector<std::vector<std::size_t>>& by_node = members.layout.by_node;
  const auto ranks_of = [&](std::size_t i) {
    return static_cast<double>(members.gpus_of(i).size());
  };
  std::vector<double> ranks_on;
  for (const std::vector<std::size_t>& here : by_node) {
    ranks_on.push_back(0);
    for (const std::size_t member : here) ranks_on.back() += ranks_of(member);
  }
  const double most_away = std::accumulate(ranks_on.begin(), ranks_on.end(), 0.0) -
                           *std::min_element(ranks_on.begin(), ranks_on.end());
  const bool to_each = fabric.tells_rails_apart();
  std::vector<MemberFlow> flows;
  for (const std::vector<std::size_t>& here : by_node)
    for (std::size_t i = 0; i < here.size(); ++i)
      for (std::size_t other = 0; other < by_node.size(); ++other) {
        const std::vector<std::size_t>& there = by_node[other];
        if (&here == &there) continue;
        const std::size_t receivers = to_each ? there.size() : 1;
        const double share =
            ranks_of(here[i]) * ranks_on[other] / most_away / static_cast<double>(receivers);
        for (std::size_t k = 0; k < receivers; ++k)
          flows.push_back({here[i], there[(i + k) % there.size()], sent_away * share});
      }
  return flows;
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
