#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/id.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

/// The NICs that some GPUs of a node use, in order: GPU g of n uses NIC floor(g * nics / n), and those up to the next GPU's where there
/// are more NICs than GPUs.
std::vector<int> nics_of(const std::vector<int>& gpus, const NodeType& type);

/// Numbers in order, each once.
std::vector<int> sorted_once(std::vector<int> numbers);

/// NICs as they work: in place of each that is lost the next of the node that is not, the first following the last. Each once, in order.
std::vector<int> working_nics(const Platform& platform, NodeId node, std::vector<int> nics);
/// Bandwidth of these NICs together, in one direction. A message is spread evenly over them, so the slowest of them decides:
///   number of NICs * rate of a NIC * least share of its rate that one of them carries.
BytesPerSecond rate_of_nics(const Platform& platform, NodeId node, const std::vector<int>& nics);

/// A one-way shared link: max-min fair among the flows on it.
struct Link {
  BytesPerSecond bandwidth{};
  std::string name;  ///< "node3 nic0 up", "node1->node2"
};

/// A flow's way through the network: the links it shares, source side then destination side.
/// Paths are shared by routes: one up path per endpoint (and pair, where a matrix gives it an own
/// link).
struct Route {
  PathId up, down;
  Seconds latency{};
};

/// The links that flows of this job can share, and the routes between GPU groups. Grows as routes
/// are asked for, so only links in use exist. Source endpoint cap -> node up -> own link of the
/// pair -> links of the fabric -> node down -> cap.
///
/// - "node3 nic0-1 up", "node3 nic0,2 up": the endpoint's NICs * effective rate; shared by endpoints on the same NICs.
/// - "node3 up": all NICs of the node, and the cap of an endpoint that uses them all.
/// - "node3->node7": where a matrix or an override gives the pair its own rate, one way.
/// - "leaf0 up": what the kind of fabric says (fabrics/); between leaf switches, and only where they are oversubscribed.
class Network {
 public:
  enum class Direction { up, down };

  /// The network of a job on the first `nodes_in_use` nodes of the platform, which must outlive it.
  Network(const Platform& platform, int nodes_in_use);

  /// Some GPUs of a node; what one simulated device, or one member of a collective, has.
  struct Endpoint {
    NodeId node;
    std::vector<int> gpus;
    auto operator<=>(const Endpoint&) const = default;
  };
  /// Handle to an endpoint's NICs, so that its routes need no search. No link exists before its first route.
  struct Attachment {
    NodeId node;
    std::size_t port = 0;
  };
  Attachment attach(NodeId node, const std::vector<int>& gpus);
  /// The route between endpoints of different nodes. One that the fabric relays leaves by the NICs of other GPUs of its node, over NVLink,
  /// which is faster than they are and adds its latency.
  Route route(const Attachment& from, const Attachment& to);
  Route route(const Endpoint& from, const Endpoint& to) {
    return route(attach(from.node, from.gpus), attach(to.node, to.gpus));
  }

  const std::vector<Link>& links() const { return links_; }
  const std::vector<LinkId>& path(PathId path) const { return paths_[path.index()]; }
  const std::vector<std::vector<LinkId>>& paths() const { return paths_; }
  /// The first of the slowest links on these paths; none where they have no link.
  std::optional<LinkId> slowest_link(std::initializer_list<PathId> paths) const;
  /// The rate of a flow that has these paths to itself: that of their slowest link, infinite where they have none.
  BytesPerSecond rate_alone(std::initializer_list<PathId> paths) const;

  // Interface with which the kinds of fabric make their links.

  /// The link of this name; made when it is first asked for.
  LinkId link(const std::string& name, BytesPerSecond bandwidth);
  /// Equal links side by side: the rails of a group of nodes, the uplinks of a switch.
  struct Bundle {
    std::string name;            ///< of all of them together: "group0"
    std::string part;            ///< of one: "rail"
    BytesPerSecond bandwidth{};  ///< of one
    int count = 0;
  };
  /// Adds to `path` what a message passes that is spread evenly over `members` of the bundle, in order, one of which may stand there several
  /// times: a link of these, on which the fullest member decides, and one of the whole bundle, so that members of overlapping sets
  /// together carry no more than there is.
  void pass(std::vector<LinkId>& path, const Bundle& bundle, const std::vector<int>& members,
            Direction direction);

  /// A link that part of a message passes.
  struct Hop {
    std::string name;
    BytesPerSecond bandwidth{};
    auto operator<=>(const Hop&) const = default;
  };
  /// Adds to `path` what a message of `num_parts` equal parts passes that each take a path of their own: the links that they cross at this
  /// stage of their paths. Several become one link, on which the fullest decides. Limit: it is shared with messages that take the same of
  /// them, not with those that take some.
  void pass(std::vector<LinkId>& path, std::vector<Hop> hops, int num_parts);

  /// A network made by hand, for tests and benchmarks.
  LinkId add_link(BytesPerSecond bandwidth, std::string name);
  PathId add_path(std::vector<LinkId> links);
  Network() = default;

 private:
  /// The links out of, or into, some NICs of a node.
  struct PortDirection {
    std::vector<LinkId> links;   ///< as messages pass them; empty until the first route
    std::optional<PathId> path;  ///< over these links alone, where a route has no others
  };
  struct Port {
    std::vector<int> nics;
    std::array<PortDirection, 2> directions;
  };
  struct NodePorts {
    std::array<std::optional<LinkId>, 2> all_nics;
    std::vector<Port> ports;
  };

  std::size_t port_of(NodeId node, std::vector<int> nics);
  /// "node3", as the whole cluster counts.
  std::string name_of(NodeId node) const;
  /// As the fabric sees them.
  NodeNics nics_at(const Attachment& at) const {
    return {platform_->in_cluster(at.node), ports_[at.node.index()].ports[at.port].nics};
  }
  /// The attachment through which a message really leaves its node.
  Attachment relayed(const Attachment& from, const Attachment& to);
  PathId shared_path(std::vector<LinkId> links);
  /// The NICs of a port as one link, and the node's link when those are not all of its NICs.
  PortDirection& port_direction(const Attachment& at, Direction direction);
  std::vector<LinkId> new_links(const Attachment& at, Direction direction);
  PathId path_of(PortDirection& port);
  LinkId node_link(NodeId node, Direction direction);
  /// The link that only this pair of nodes has, where the platform gives it one.
  std::optional<LinkId> own_link(NodeId from, NodeId to);

  const Platform* platform_ = nullptr;
  FabricPaths fabric_paths_;
  std::vector<Link> links_;
  std::vector<std::vector<LinkId>> paths_;
  std::vector<NodePorts> ports_;                          ///< by node
  std::unordered_map<std::string, LinkId> link_by_name_;  ///< those between nodes
  std::map<std::vector<LinkId>, PathId> path_by_links_;   ///< those with links between nodes
};

/// The rate that `platform` gives the pair alone, one way: its override, else its matrix entry
/// times the rails.
std::optional<BytesPerSecond> own_bandwidth(const Platform& platform, NodeId from, NodeId to);
/// Bandwidth that neighbours leave on a link: its bandwidth less their mean rate, but no less than a flow of this job has in max-min fair
/// sharing with each of theirs. Limit: bursts are spread over the time between them.
BytesPerSecond left_by_neighbours(const Platform& platform, const std::string& link,
                                  BytesPerSecond bandwidth);
/// All NICs of node `node` together, one way, as they are built.
BytesPerSecond node_bandwidth(const Platform& platform, NodeId node);

/// Rings that a collective over these GPUs of a mesh can run at once: the most directed cycles through all of them of which no two
/// use a lane in the same direction. On a DGX-1V 1, 2, 4, 0, 2, 4 and 6 for the first 2 to 8 GPUs, which is what the measured
/// all-reduce shows for 2, 4 and 8 (V100, 22.3 GB/s a ring; docs/model.md). 0: messages have to be relayed, or go through the host.
/// Counted exactly for groups of up to `most_counted` GPUs; larger ones get the bound that num_relayed_rings() is.
int num_rings(const Interconnect& interconnect, const std::vector<int>& gpus);
inline constexpr int most_counted = 8;

/// Closed walks through all of these GPUs, some passed several times: no more than the fewest lanes across any cut of the group
/// (Boost's Stoer-Wagner). 0: the group is not connected by lanes.
int num_relayed_rings(const Interconnect& interconnect, const std::vector<int>& gpus);

}  // namespace windtunnel
