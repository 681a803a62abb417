#include "cost/ring_layout.hpp"

#include <algorithm>
#include <map>

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

}  // namespace windtunnel
