#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/id.hpp"
#include "cost/collective_cost.hpp"
#include "operations/label.hpp"
#include "plan/compression.hpp"
#include "platform/platform.hpp"
#include "units/quantity.hpp"

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

/// The edges of a ring through members on these nodes: node after node, each edge spread over the members at its ends (NCCL's
/// channels leave a node through all its NICs).
RingLayout ring_layout(const std::vector<NodeId>& node_of_member);

/// The members of a collective as they lie on nodes. What its functions answer must outlive it.
struct CollectiveMembers {
  std::vector<NodeId> nodes;  ///< by member
  std::function<const std::vector<int>&(std::size_t member)> gpus_of;
  std::function<const NodeType&(std::size_t member)> type_of;  ///< of its node
  RingLayout layout = ring_layout(nodes);
};

/// The path out of a node: what its members' NICs carry, or the link that it has for itself to the next node.
struct NodeExit {
  BytesPerSecond rate{};
  int nics = 0;
  bool operator==(const NodeExit&) const = default;
};
/// The exit of these GPUs of `node`, whichever node comes next.
NodeExit exit_of(const Platform& platform, NodeId node, const NodeType& type,
                 const std::vector<int>& gpus);
/// The same to the node `next`.
NodeExit exit_to(const Platform& platform, NodeId node, NodeId next, NodeExit exit);
/// The exit of the node whose ring step, alone on its links, is the slowest.
NodeExit slowest_exit(const Platform& platform, const CollectiveMembers& members);

/// The part of an all-reduce's volume and steps that a collective has: all of them, or half.
double share_of(RingKind work);
/// The kind of ring of a label whose collective is one.
RingKind ring_kind_of(Label label);

/// A collective to be split into steps.
struct CollectiveTask {
  RingKind work = RingKind::all_reduce;
  Bytes payload{};               ///< what one rank holds: the whole reduced or gathered tensor
  double ranks_per_member = 1;   ///< over `copies_per_member`, as many collectives run side by side
  double copies_per_member = 1;  ///< ranks of a member that take part in the same collective
  const RingLayout* layout = nullptr;
  Seconds hop{}, hop_in_node{};  ///< latency of a step between nodes, and of one inside
  /// Rings over so many bytes among the members of each node; the slowest node's.
  std::function<Seconds(Bytes payload, RingKind work)> in_node;
  /// An all-reduce by the nodes' switches, where all have such.
  std::function<SwitchTime(Bytes payload)> in_switch;
  int switch_channels = 1;         ///< Interconnect::switch_channels
  NodeLinks links = {};            ///< the least of all nodes'
  bool pat = false;                ///< CrossingTask::pat
  std::function<NodeExit()> exit;  ///< out of a node: slowest_exit()
};

/// The task of these members, which are to outlive it. `pat`: NCCL has PAT.
CollectiveTask collective_task(const Platform& platform, const CollectiveMembers& members,
                               Bytes payload, RingKind work, bool pat, double copies = 1);

/// Bytes from one member to another, in different nodes.
struct MemberFlow {
  std::size_t from = 0, to = 0;
  Bytes bytes{};
};

/// Steps that the engine simulates: first the latency, then the flows, overlapped with the fixed part.
struct CollectiveSteps {
  std::string algorithm =
      "ring";  ///< NodeCrossing::algorithm; in one node "NVLS" where the switch reduces
  Seconds fixed{}, latency{};
  Bytes traffic{};  ///< sent by all members together
  std::vector<MemberFlow> flows = {};
  std::string_view protocol = "Simple";  ///< NodeCrossing::protocol
};

/// Bytes that all members of a ring send together: 2 (N-1)/N * payload from each rank (all-reduce; half of it otherwise).
Bytes ring_traffic(const CollectiveTask& task);
/// `volume` over each edge between nodes.
std::vector<MemberFlow> edge_flows(const RingLayout& layout, Bytes volume);

/// An exchange, each rank with each other: a rank sends to a node in proportion to the ranks there, to the member of its own place among
/// them, as if what others get were relayed in the node. Where the fabric distinguishes NICs, what is for members on other NICs goes to one of them as
/// a flow of its own. `sent_away` leaves the node of a rank with the fewest others in its node, which sends most away.
std::vector<MemberFlow> exchange_flows(const CollectiveMembers& members, Bytes sent_away,
                                       const Fabric& fabric);

/// A way of reducing gradients among replicas. They are a table: collectives.def lists them, one file of collectives/ defines each
/// (docs/extending.md).
struct CollectiveAlgorithm {
  std::string name;  ///< as scenario files write it
  std::function<CollectiveSteps(const CollectiveTask&)> steps;
};

/// The table. The first is the default.
const std::vector<CollectiveAlgorithm>& collective_algorithms();
/// The algorithm of a name that the table has.
const CollectiveAlgorithm& collective_algorithm(std::string_view name);

/// One collective through one rank of each member, once for every rank of a member. Inside and between nodes as in a pipeline: by the
/// algorithm that NCCL picks, or is made to take (crossing()). Trees of nodes are laid over the ring's edges, each with what the node sends
/// that sends most.
///   in a node   the payload among its members
///   an edge     ring: 2 (n-1)/n * payload (all-reduce; half of it otherwise), over the nodes' NICs: NCCL's channels leave a node
///               through all of them
///   latency     ring: ring_all_reduce_latency() (half of it otherwise)
CollectiveSteps flat_collective(const CollectiveTask& task, std::string_view algorithm = {});

}  // namespace windtunnel
