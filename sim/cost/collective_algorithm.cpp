#include "cost/collective_algorithm.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>

#include "core/contracts.hpp"
#include "cost/collective_cost.hpp"
#include "platform/network.hpp"

namespace windtunnel {

namespace collectives {
#define WT_COLLECTIVE(name) CollectiveAlgorithm name();
#include "cost/collectives.def"
#undef WT_COLLECTIVE
}  // namespace collectives

double share_of(RingKind work) { return work == RingKind::all_reduce ? 1.0 : 0.5; }

RingKind ring_kind_of(Label label) {
  switch (row_of(label).kind) {
    case OperationKind::all_reduce:
      return RingKind::all_reduce;
    case OperationKind::reduce_scatter:
      return RingKind::reduce_scatter;
    default:
      return RingKind::all_gather;
  }
}

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
                               Bytes payload, RingKind work, bool pat, double copies) {
  CollectiveTask task;
  task.pat = pat;
  task.work = work;
  task.payload = payload;
  task.ranks_per_member = static_cast<double>(members.gpus_of(0).size());
  task.copies_per_member = copies;
  task.layout = &members.layout;
  task.hop = platform.fabric.collective_latency;
  task.hop_in_node = hop_in_node(members.type_of(0).interconnect);
  task.switch_channels = members.type_of(0).interconnect.switch_channels;
  const std::vector<std::vector<std::size_t>>& by_node = members.layout.by_node;
  const auto gpus_on = [&members, copies](const std::vector<std::size_t>& here) {
    std::vector<int> gpus;
    for (const std::size_t member : here) {
      const std::vector<int>& all = members.gpus_of(member);
      const auto taking_part = static_cast<std::ptrdiff_t>(std::ceil(copies));
      gpus.insert(gpus.end(), all.begin(), all.begin() + std::min(taking_part, std::ssize(all)));
    }
    return gpus;
  };
  /// The slowest node's.
  const auto longest = [&members, gpus_on](const auto& time) {
    Seconds most{};
    for (const std::vector<std::size_t>& here : members.layout.by_node)
      most = std::max(most, time(members.type_of(here.front()).interconnect, gpus_on(here)));
    return most;
  };
  task.in_node = [longest](Bytes bytes, RingKind part) {
    return longest([&](const Interconnect& wires, const std::vector<int>& gpus) {
      return in_node_ring(wires, gpus, bytes, part);
    });
  };
  if (std::all_of(by_node.begin(), by_node.end(), [&](const auto& here) {
        return reduces_in_switch(members.type_of(here.front()).interconnect, gpus_on(here).size());
      }))
    task.in_switch = [longest, nodes = members.layout.num_nodes()](Bytes bytes) {
      const auto part = [&](Seconds SwitchTime::*of) {
        return longest([&](const Interconnect& wires, const std::vector<int>& gpus) {
          return in_switch_all_reduce(wires, gpus.size(), bytes, nodes).*of;
        });
      };
      return SwitchTime{part(&SwitchTime::fill), part(&SwitchTime::rounds)};
    };
  task.links = links_of(members.type_of(0), gpus_on(by_node.front()));
  if (platform.node_types.size() > 1)
    for (const std::vector<std::size_t>& here : by_node) {
      const NodeLinks other = links_of(members.type_of(here.front()), gpus_on(here));
      task.links.nvlink = task.links.nvlink && other.nvlink && other.gpu == task.links.gpu;
      task.links.wires = std::min(task.links.wires, other.wires);
      task.links.gpu = std::min(task.links.gpu, other.gpu);
    }
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
  std::vector<std::vector<int>> nics;  // by member, where the fabric distinguishes them
  if (fabric.separates_rails())
    for (std::size_t i = 0; i < members.nodes.size(); ++i)
      nics.push_back(nics_of(members.gpus_of(i), members.type_of(i)));
  std::vector<MemberFlow> flows;
  for (const std::vector<std::size_t>& here : by_node)
    for (std::size_t i = 0; i < here.size(); ++i)
      for (std::size_t other = 0; other < by_node.size(); ++other) {
        const std::vector<std::size_t>& there = by_node[other];
        if (&here == &there) continue;
        const Bytes sent = sent_away * (ranks_of(here[i]) * ranks_on[other] / most_away);
        const std::size_t own = i % there.size();
        double on_own_rail = 1;
        if (!nics.empty())
          on_own_rail = static_cast<double>(std::count_if(
                            there.begin(), there.end(),
                            [&](std::size_t to) { return nics[to] == nics[there[own]]; })) /
                        static_cast<double>(there.size());
        flows.push_back({here[i], there[own], sent * on_own_rail});
        if (on_own_rail < 1)
          flows.push_back(
              {here[i], there[(own + there.size() / 2) % there.size()], sent * (1 - on_own_rail)});
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

int RingLayout::num_members() const {
  std::size_t members = 0;
  for (const std::vector<std::size_t>& on_node : by_node) members += on_node.size();
  return static_cast<int>(members);
}

RingLayout ring_layout(const std::vector<NodeId>& node_of_member) {
  RingLayout layout;
  std::map<NodeId, std::size_t> index;
  for (std::size_t member = 0; member < node_of_member.size(); ++member) {
    const auto [found, is_new] = index.try_emplace(node_of_member[member], layout.by_node.size());
    if (is_new) layout.by_node.emplace_back();
    layout.by_node[found->second].push_back(member);
  }
  const std::size_t nodes = layout.by_node.size();
  if (nodes == 1) return layout;
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto& from = layout.by_node[i];
    const auto& to = layout.by_node[(i + 1) % nodes];
    const std::size_t lanes = std::max(from.size(), to.size());
    for (std::size_t lane = 0; lane < lanes; ++lane)
      layout.edges.push_back(
          {from[lane % from.size()], to[lane % to.size()], 1 / static_cast<double>(lanes)});
  }
  return layout;
}

NodeExit exit_of(const Platform& platform, NodeId node, const NodeType& type,
                 const std::vector<int>& gpus) {
  const std::vector<int> nics = working_nics(platform, node, nics_of(gpus, type));
  return {rate_of_nics(platform, node, nics), static_cast<int>(nics.size())};
}

NodeExit exit_to(const Platform& platform, NodeId node, NodeId next, NodeExit exit) {
  if (const auto own = own_bandwidth(platform, node, next)) exit.rate = std::min(exit.rate, *own);
  return exit;
}

NodeExit slowest_exit(const Platform& platform, const CollectiveMembers& members) {
  const std::vector<std::vector<std::size_t>>& by_node = members.layout.by_node;
  NodeExit slowest{BytesPerSecond{std::numeric_limits<double>::infinity()}, 0};
  for (std::size_t i = 0; i < by_node.size(); ++i) {
    const std::vector<std::size_t>& here = by_node[i];
    std::vector<int> gpus;
    for (const std::size_t member : here)
      gpus.insert(gpus.end(), members.gpus_of(member).begin(), members.gpus_of(member).end());
    const NodeId node = members.nodes[here.front()];
    const NodeId next = members.nodes[by_node[(i + 1) % by_node.size()].front()];
    const NodeExit exit =
        exit_to(platform, node, next, exit_of(platform, node, members.type_of(here.front()), gpus));
    if (exit.rate < slowest.rate) slowest = exit;
  }
  return slowest;
}

}  // namespace windtunnel
