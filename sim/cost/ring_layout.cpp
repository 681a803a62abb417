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

BytesPerSecond slowest_step(
    const Platform& platform, const RingLayout& layout, const std::vector<NodeId>& node_of_member,
    const std::function<const std::vector<int>&(std::size_t member)>& gpus_of) {
  BytesPerSecond slowest{std::numeric_limits<double>::infinity()};
  for (std::size_t i = 0; i < layout.by_node.size(); ++i) {
    const std::vector<std::size_t>& here = layout.by_node[i];
    std::vector<int> gpus;
    for (const std::size_t member : here)
      gpus.insert(gpus.end(), gpus_of(member).begin(), gpus_of(member).end());
    const NodeId node = node_of_member[here.front()];
    const NodeId next = node_of_member[layout.by_node[(i + 1) % layout.by_node.size()].front()];
    const NodeType& type = platform.type_of(node);
    slowest = std::min(slowest,
                       type.effective_nic_rate() * static_cast<double>(nics_of(gpus, type).size()));
    if (const auto own = own_bandwidth(platform, node, next)) slowest = std::min(slowest, *own);
  }
  return slowest;
}

}  // namespace windtunnel
