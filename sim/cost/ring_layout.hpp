#pragma once

#include <functional>
#include <vector>

#include "core/id.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

/// One of the flows of a ring between two nodes: from member `from` to member `to` of the collective, carrying `share` of the
/// ring's volume.
struct RingEdge {
  std::size_t from = 0, to = 0;
  double share = 1;
};

/// A ring as it lies on the nodes.
struct RingLayout {
  std::vector<std::vector<std::size_t>>
      by_node;  ///< members of each node, nodes in the order in which they first come
  std::vector<RingEdge> edges;  ///< between nodes; none when all members share one

  int num_nodes() const { return static_cast<int>(by_node.size()); }
  int num_members() const;
};

/// How a ring through members on these nodes runs: node after node, each edge spread over the members at its ends (NCCL's
/// channels leave a node through all its NICs).
RingLayout ring_layout(const std::vector<NodeId>& node_of_member);

/// The members of a collective as they lie on nodes. What its functions answer must outlive it.
struct CollectiveMembers {
  std::vector<NodeId> nodes;  ///< by member
  std::function<const std::vector<int>&(std::size_t member)> gpus_of;
  std::function<const NodeType&(std::size_t member)> type_of;  ///< of its node
  RingLayout layout = ring_layout(nodes);
};

/// The way out of a node: what its members' NICs carry, or the link that it has for itself to the next node.
struct NodeExit {
  BytesPerSecond rate{};
  int nics = 0;
};
/// Of the node whose ring step, alone on its links, is the slowest.
NodeExit slowest_exit(const Platform& platform, const CollectiveMembers& members);

}  // namespace windtunnel
