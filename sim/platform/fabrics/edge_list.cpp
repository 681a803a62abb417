#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/pending/queue.hpp>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/contracts.hpp"
#include "platform/fabric_parts.hpp"
#include "platform/network.hpp"

namespace windtunnel::fabrics {
namespace {

constexpr const char* links = "links";

using Vertex = std::size_t;
/// By vertex: from where its incoming cables come.
using Incoming = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

struct Cable {
  Vertex to;
  BytesPerSecond bandwidth;
  int count;
};

/// "node3" or "node3 nic1", and no switch.
bool names_node(const std::string& name) {
  const std::string node = "node", digits = name.substr(0, name.find(' '));
  return digits.starts_with(node) && digits.size() > node.size() &&
         digits.find_first_not_of("0123456789", node.size()) == std::string::npos;
}

/// Switches and NICs, and the cables one way. Names stand in order, so that the lowest number has the lowest name.
class CableGraph {
 public:
  explicit CableGraph(const std::vector<FabricCable>& cables) {
    for (const FabricCable& cable : cables) {
      vertices_.try_emplace(cable.from, 0);
      vertices_.try_emplace(cable.to, 0);
    }
    for (auto& [name, vertex] : vertices_) {
      vertex = names_.size();
      names_.push_back(name);
      is_node_.push_back(names_node(name));
    }
    std::set<std::pair<Vertex, Vertex>> given;
    for (const FabricCable& cable : cables) given.emplace(at(cable.from), at(cable.to));
    outgoing_.resize(names_.size());
    for (const FabricCable& cable : cables) {
      const Vertex from = at(cable.from), to = at(cable.to);
      outgoing_[from].push_back({to, cable.bandwidth, cable.count});
      if (!given.contains({to, from}))
        outgoing_[to].push_back({from, cable.bandwidth, cable.count});
    }
    for (Vertex from = 0; from < names_.size(); ++from) {
      std::ranges::sort(outgoing_[from],
                        [](const Cable& one, const Cable& other) { return one.to < other.to; });
      for (const Cable& cable : outgoing_[from]) boost::add_edge(cable.to, from, incoming_);
    }
  }

  std::optional<Vertex> find(const std::string& name) const {
    const auto found = vertices_.find(name);
    return found == vertices_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::string& name(Vertex vertex) const { return names_[vertex]; }
  const std::vector<Cable>& outgoing(Vertex vertex) const { return outgoing_[vertex]; }

  /// The vertex a NIC is plugged into: the one of its own name, else that of its node.
  std::optional<Vertex> plug(int node, int nic) const {
    const std::string of_node = "node" + std::to_string(node);
    const std::optional<Vertex> own = find(of_node + " nic" + std::to_string(nic));
    return own ? own : find(of_node);
  }
  /// Nodes 0, 1, ... that have a cable.
  int num_nodes() const {
    int nodes = 0;
    while (plug(nodes, 0)) ++nodes;
    return nodes;
  }

  /// Hops from each vertex to this one; messages do not pass through nodes. 0: that vertex, or no way.
  std::vector<int> hops_to(Vertex target) const {
    std::vector<int> hops(names_.size(), 0);
    std::vector<boost::default_color_type> colors;
    for (const bool is_node : is_node_)  // a black vertex has been dealt with
      colors.push_back(is_node ? boost::black_color : boost::white_color);
    boost::queue<Vertex> queue;
    boost::breadth_first_visit(
        incoming_, target, queue,
        boost::make_bfs_visitor(boost::record_distances(hops.data(), boost::on_tree_edge())),
        boost::make_iterator_property_map(colors.begin(),
                                          boost::get(boost::vertex_index, incoming_)));
    for (Vertex vertex = 0; vertex < names_.size(); ++vertex)
      for (const Cable& cable : outgoing_[vertex])
        if (vertex != target && is_node_[vertex] && leads_on(cable, target, hops) &&
            (hops[vertex] == 0 || hops[cable.to] + 1 < hops[vertex]))
          hops[vertex] = hops[cable.to] + 1;
    return hops;
  }
  /// True if a message to `target` can take the cable: it leads there, or to a switch with a path to it.
  bool leads_on(const Cable& cable, Vertex target, const std::vector<int>& hops) const {
    return cable.to == target || (!is_node_[cable.to] && hops[cable.to] > 0);
  }

 private:
  Vertex at(const std::string& of_name) const { return vertices_.at(of_name); }

  std::map<std::string, Vertex> vertices_;
  std::vector<std::string> names_;
  std::vector<bool> is_node_;
  std::vector<std::vector<Cable>> outgoing_;  ///< by vertex, the lowest name first
  Incoming incoming_;
};

class EdgeListPaths {
 public:
  explicit EdgeListPaths(const Platform& platform)
      : graph_(std::make_shared<CableGraph>(platform.fabric.cables(links))),
        hashes_(platform.fabric.is_set(routing)),
        seed_(platform.fabric.whole(routing_seed)),
        domain_nodes_(platform.domain_nodes),
        nics_of_tray_(platform.node_types.front().nics / platform.node_types.front().trays) {}

  FabricPath operator()(Network& network, const NodeNics& from, const NodeNics& to) {
    const std::vector<MessagePart> parts = message_parts(from, to);
    std::vector<std::vector<Network::Hop>> hops;
    for (const MessagePart& part : parts) {
      Vertex at = plug(part.from);
      const Vertex target = plug(part.to);
      const std::vector<int>& left = hops_to(target);
      for (std::size_t stage = 0; at != target; ++stage) {
        WT_EXPECT(left[at] > 0);
        if (stage == hops.size()) hops.emplace_back();
        at = next(at, target, left, {part, static_cast<int>(stage)}, hops[stage]);
      }
    }
    FabricPath path;
    for (const std::vector<Network::Hop>& stage : hops)
      network.pass(path.up, stage, static_cast<int>(parts.size()));
    return path;
  }

 private:
  /// Trays of NVLink domains keep their numbers and NICs.
  Vertex plug(const NodeNics& at) const {
    const int nic = at.nics.front();
    const std::optional<Vertex> plug =
        graph_->plug(static_cast<int>(at.node.index()) * domain_nodes_ + nic / nics_of_tray_,
                     nic % nics_of_tray_);
    WT_EXPECT(plug);
    return *plug;
  }

  const std::vector<int>& hops_to(Vertex target) {
    const auto [known, is_new] = hops_.try_emplace(target);
    if (is_new) known->second = graph_->hops_to(target);
    return known->second;
  }

  /// Takes one of the cables that lead nearer: that to the lowest name, where equal ones side by side are one pool, or the one that the hash picks.
  Vertex next(Vertex at, Vertex target, const std::vector<int>& left,
              const std::pair<MessagePart, int>& part, std::vector<Network::Hop>& hops) const {
    std::vector<const Cable*> nearer;
    int count = 0;
    for (const Cable& cable : graph_->outgoing(at)) {
      if (left[at] != left[cable.to] + 1 || !graph_->leads_on(cable, target, left)) continue;
      nearer.push_back(&cable);
      count += cable.count;
    }
    const std::string name = graph_->name(at) + "->";
    if (!hashes_) {
      const Cable& cable = *nearer.front();
      hops.push_back({name + graph_->name(cable.to), cable.bandwidth * cable.count});
      return cable.to;
    }
    int choice = hashed_choice(count, seed_, part.first.from, part.first.to, part.second);
    for (const Cable* cable : nearer) {
      if (choice >= cable->count) {
        choice -= cable->count;
        continue;
      }
      const std::string which = cable->count > 1 ? " cable" + std::to_string(choice) : "";
      hops.push_back({name + graph_->name(cable->to) + which, cable->bandwidth});
      return cable->to;
    }
    WT_UNREACHABLE();
  }

  std::shared_ptr<const CableGraph> graph_;
  bool hashes_;
  int seed_, domain_nodes_, nics_of_tray_;
  std::map<Vertex, std::vector<int>> hops_;  ///< by target
};

FabricPaths paths(const Platform& platform, int /*num_nodes*/) { return EdgeListPaths(platform); }

std::string unevenness(const Fabric& /*fabric*/, int num_nodes) {
  return num_nodes > 1 ? "its cables are listed one by one" : "";
}

std::pair<std::string, std::string> problem(const Platform& platform) {
  const std::vector<FabricCable>& cables = platform.fabric.cables(links);
  std::set<std::pair<std::string, std::string>> seen;
  for (const FabricCable& cable : cables)
    if (!seen.emplace(cable.from, cable.to).second)
      return {links, "there are two entries from " + cable.from + " to " + cable.to +
                         "; equal cables side by side are one entry with their number behind the "
                         "rate"};
  const CableGraph graph(cables);
  const int nodes = graph.num_nodes();
  if (nodes < 2)
    return {
        links,
        "an edge list needs links: cables such as [\"node0\", \"leaf0\", \"400 Gbps\"] from "
        "node0, node1 and so on, or from their NICs (\"node0 nic1\"), to switches of any names"};
  const std::vector<int> hops = graph.hops_to(*graph.plug(0, 0));
  for (const FabricCable& cable : cables)
    for (const std::string& end : {cable.from, cable.to})
      if (end != graph.name(*graph.plug(0, 0)) && hops[*graph.find(end)] == 0)
        return {links, "no cables lead from " + end + " to node0"};
  if (platform.node_types.empty()) return {};
  for (int node = 0; node < nodes; ++node)
    for (int nic = 0; nic < platform.node_types.front().nics; ++nic)
      if (!graph.plug(node, nic))
        return {links, "NIC " + std::to_string(nic) + " of node" + std::to_string(node) +
                           " has no cable, and its NIC 0 has"};
  return {};
}

std::optional<int> most_nodes(const Platform& platform) {
  return CableGraph(platform.fabric.cables(links)).num_nodes() / platform.domain_nodes;
}

std::vector<FabricWhatIf> what_ifs(const Fabric& fabric) {
  return {fabric.is_set(routing) ? FabricWhatIf{"the lowest name of equal paths", routing, 0.0}
                                 : FabricWhatIf{"ECMP over equal paths", routing, 1.0}};
}

}  // namespace

/// Switches and cables given one by one, from a cable plan or a measurement. An end is "node3" (all NICs of a node), "node3 nic1", or else
/// the name of a switch. An entry holds for both directions, unless another gives the reverse one. Messages take a path with the fewest
/// hops, which does not lead through nodes; of several such cables that to the switch of the lowest name, where equal ones side by side are
/// one pool, or by ECMP the one that a hash of the ends picks at each switch (RFC 2992). Limit: routes do not weigh rates or avoid full
/// cables.
FabricKind edge_list() {
  return {.name = "edge_list",
          .about = "switches and cables given one by one; fewest hops, by lowest name or ECMP",
          .keys = {{.name = links,
                    .label = "rates of listed cables",
                    .type = FabricKey::Type::cables,
                    .fallback = std::vector<FabricCable>{},
                    .least = 1,
                    .most = 1e4},
                   routing_key({"lowest_name", "ecmp"}),
                   routing_seed_key([](const Fabric& fabric) { return fabric.is_set(routing); })},
          .paths = paths,
          .unevenness = unevenness,
          .problem = problem,
          .most_nodes = most_nodes,
          .what_ifs = what_ifs};
}

}  // namespace windtunnel::fabrics
