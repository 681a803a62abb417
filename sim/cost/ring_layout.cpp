#include "cost/ring_layout.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "platform/network.hpp"
#include "platform/nics.hpp"

namespace windtunnel {

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
    const std::vector<int> nics =
        working_nics(platform, node, nics_of(gpus, members.type_of(here.front())));
    BytesPerSecond rate = rate_of_nics(platform, node, nics);
    if (const auto own = own_bandwidth(platform, node, next)) rate = std::min(rate, *own);
    if (rate < slowest.rate) slowest = {rate, static_cast<int>(nics.size())};
  }
  return slowest;
}

}  // namespace windtunnel
