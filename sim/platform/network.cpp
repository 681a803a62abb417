#include "platform/network.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/stoer_wagner_min_cut.hpp>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

using LaneGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property,
                          boost::property<boost::edge_weight_t, int>>;

/// Arcs between the members of a group: a lane is one in each direction.
using Arcs = std::vector<std::vector<int>>;

Arcs arcs_between(const Interconnect& interconnect, const std::vector<int>& gpus) {
  Arcs arcs;
  for (const int from : gpus) {
    std::vector<int>& row = arcs.emplace_back();
    for (const int to : gpus)
      row.push_back(from == to ? 0
                               : interconnect.lanes.at(static_cast<std::size_t>(from))
                                     .at(static_cast<std::size_t>(to)));
  }
  return arcs;
}

/// Decides if a given number of arc-disjoint cycles can be packed into a group. All of them leave the GPU with the fewest lanes, each by
/// another arc, so the search goes over its arcs.
class CyclePacking {
 public:
  explicit CyclePacking(Arcs arcs) : free_(std::move(arcs)), visited_(free_.size()) {
    const auto degree = [this](std::size_t gpu) {
      return std::accumulate(free_[gpu].begin(), free_[gpu].end(), 0);
    };
    for (std::size_t gpu = 1; gpu < free_.size(); ++gpu)
      if (degree(gpu) < degree(start_)) start_ = gpu;
    most_ = degree(start_);
  }

  int most_cycles() {
    for (int cycles = most_; cycles > 0; --cycles)
      if (packs(0, cycles)) return cycles;
    return 0;
  }

 private:
  /// So many more cycles, none of which begins with an arc to a GPU before `next`.
  bool packs(std::size_t next, int cycles) {
    if (cycles == 0) return true;
    for (std::size_t to = next; to < free_.size(); ++to)
      if (free_[start_][to] > 0) {
        visited_[start_] = true;
        const bool done = extends(start_, to, 1, cycles);
        visited_[start_] = false;
        if (done) return true;
      }
    return false;
  }

  /// Takes the arc `from` -> `to` as the next of the current cycle, and goes on.
  bool extends(std::size_t from, std::size_t to, std::size_t length, int cycles) {
    --free_[from][to];
    const bool done = to == start_ ? closes(length, cycles) : visits(to, length, cycles);
    if (!done) ++free_[from][to];
    return done;
  }

  bool visits(std::size_t gpu, std::size_t length, int cycles) {
    if (length == 1) first_ = gpu;
    visited_[gpu] = true;
    const bool last = length + 1 == free_.size();
    bool done = false;
    for (std::size_t to = 0; to < free_.size() && !done; ++to)
      if (free_[gpu][to] > 0 && (last ? to == start_ : !visited_[to]))
        done = extends(gpu, to, length + 1, cycles);
    visited_[gpu] = false;
    return done;
  }

  bool closes(std::size_t length, int cycles) {
    if (length != free_.size()) return false;
    const std::size_t first = first_;
    std::vector<bool> of_this_cycle(free_.size());
    of_this_cycle.swap(visited_);
    const bool done = packs(first, cycles - 1);
    of_this_cycle.swap(visited_);
    first_ = first;
    return done;
  }

  Arcs free_;
  std::vector<bool> visited_;
  std::size_t start_ = 0, first_ = 0;
  int most_ = 0;
};

/// Endings of link names, by direction.
constexpr std::array ends{" up", " down"};

bool are_neighbours(const std::vector<int>& members) {
  return std::ranges::adjacent_find(members, [](int a, int b) { return b != a + 1; }) ==
         members.end();
}

/// "0-2" for neighbours, "0,2" otherwise.
std::string text_of(const std::vector<int>& members) {
  if (members.size() > 1 && are_neighbours(members))
    return std::to_string(members.front()) + "-" + std::to_string(members.back());
  std::string text;
  for (const int member : members) text += (text.empty() ? "" : ",") + std::to_string(member);
  return text;
}

/// The share of its rate that a NIC carries; 1 where nothing is wrong with it.
double share_of(const Platform& platform, NodeId node, int nic) {
  for (const NicFault& fault : platform.faults)
    if (fault.node == node && fault.nic == nic) return fault.share;
  return 1;
}

}  // namespace

int num_rings(const Interconnect& interconnect, const std::vector<int>& gpus) {
  WT_EXPECT(gpus.size() >= 2);
  if (gpus.size() > most_counted) return num_relayed_rings(interconnect, gpus);
  return CyclePacking(arcs_between(interconnect, gpus)).most_cycles();
}

int num_relayed_rings(const Interconnect& interconnect, const std::vector<int>& gpus) {
  WT_EXPECT(gpus.size() >= 2);
  const Arcs arcs = arcs_between(interconnect, gpus);
  LaneGraph graph(gpus.size());
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (arcs[i][j] > 0) boost::add_edge(i, j, arcs[i][j], graph);
  return boost::stoer_wagner_min_cut(graph, boost::get(boost::edge_weight, graph));
}

std::vector<int> nics_of(const std::vector<int>& gpus, const NodeType& type) {
  std::vector<int> nics;
  for (const int gpu : gpus) {
    WT_EXPECT(gpu >= 0 && gpu < type.gpus);
    if (!type.nic_of_gpu.empty()) {
      const std::vector<int>& own = type.nic_of_gpu[static_cast<std::size_t>(gpu)];
      nics.insert(nics.end(), own.begin(), own.end());
      continue;
    }
    const int first = gpu * type.nics / type.gpus;
    const int end = (gpu + 1) * type.nics / type.gpus;
    for (int nic = first; nic < std::max(first + 1, end); ++nic) nics.push_back(nic);
  }
  return sorted_once(std::move(nics));
}

std::vector<int> sorted_once(std::vector<int> numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::vector<int> working_nics(const Platform& platform, NodeId node, std::vector<int> nics) {
  if (platform.faults.empty()) return nics;
  const int all = platform.type_of(node).nics;
  for (int& nic : nics)
    for (int tried = 0; tried < all && share_of(platform, node, nic) == 0; ++tried)
      nic = (nic + 1) % all;
  return sorted_once(std::move(nics));
}

BytesPerSecond rate_of_nics(const Platform& platform, NodeId node, const std::vector<int>& nics) {
  double least = 1;
  if (!platform.faults.empty())
    for (const int nic : nics) least = std::min(least, share_of(platform, node, nic));
  return platform.type_of(node).effective_nic_rate() * static_cast<int>(nics.size()) * least;
}

Network::Network(const Platform& platform, int nodes_in_use) : platform_(&platform) {
  const Platform& cluster = platform.cluster ? *platform.cluster : platform;
  fabric_paths_ =
      cluster.fabric.kind->paths(cluster, cluster.num_nodes(platform.extent(nodes_in_use)));
}

std::string Network::name_of(NodeId node) const {
  return "node" + std::to_string(platform_->in_cluster(node).index());
}

std::size_t Network::port_of(NodeId node, std::vector<int> nics) {
  if (node.index() >= ports_.size()) ports_.resize(node.index() + std::size_t{1});
  std::vector<Port>& ports = ports_[node.index()].ports;
  const auto known =
      std::ranges::find_if(ports, [&](const Port& port) { return port.nics == nics; });
  const auto number = static_cast<std::size_t>(known - ports.begin());
  if (known == ports.end()) ports.push_back({std::move(nics), {}});
  return number;
}

Network::Attachment Network::attach(NodeId node, const std::vector<int>& gpus) {
  WT_EXPECT(platform_ != nullptr);
  WT_EXPECT(!gpus.empty());
  return {node,
          port_of(node, working_nics(*platform_, node, nics_of(gpus, platform_->type_of(node))))};
}

Network::Attachment Network::relayed(const Attachment& from, const Attachment& to) {
  const FabricKind& kind = *platform_->fabric.kind;
  if (!kind.relay) return from;
  std::vector<int> nics = kind.relay(*platform_, nics_at(from), nics_at(to));
  if (nics.empty()) return from;
  return {from.node, port_of(from.node, working_nics(*platform_, from.node, std::move(nics)))};
}

Route Network::route(const Attachment& from, const Attachment& to) {
  WT_EXPECT(from.node != to.node);
  const Attachment leaves = relayed(from, to);
  Seconds latency = platform_->fabric.latency;
  if (leaves.port != from.port)
    latency += platform_->type_of(from.node).interconnect.point_to_point_latency;
  PortDirection& source = port_direction(leaves, Direction::up);
  PortDirection& target = port_direction(to, Direction::down);
  const std::optional<LinkId> own = own_link(from.node, to.node);
  const FabricPath path = fabric_paths_(*this, nics_at(leaves), nics_at(to));
  if (!own && path.up.empty() && path.down.empty()) {
    const PathId up = path_of(source);
    return {up, path_of(target), latency};
  }
  std::vector<LinkId> up = source.links, down = path.down;
  if (own) up.push_back(*own);
  up.insert(up.end(), path.up.begin(), path.up.end());
  down.insert(down.end(), target.links.begin(), target.links.end());
  return {shared_path(std::move(up)), shared_path(std::move(down)), latency};
}

void Network::pass(std::vector<LinkId>& path, const Bundle& bundle, const std::vector<int>& members,
                   Direction direction) {
  const char* const end = ends[static_cast<std::size_t>(direction)];
  const LinkId whole = link(bundle.name + end, bundle.bandwidth * bundle.count);
  const auto size = static_cast<int>(members.size());
  if (size == bundle.count && are_neighbours(members)) return path.push_back(whole);
  int fullest = 1, parts = 1;
  for (std::size_t i = 1; i < members.size(); ++i) {
    parts = members[i] == members[i - 1] ? parts + 1 : 1;
    fullest = std::max(fullest, parts);
  }
  const LinkId some =
      link(bundle.name + " " + bundle.part + text_of(members) + end,
           bundle.bandwidth * (static_cast<double>(size) / static_cast<double>(fullest)));
  const bool is_up = direction == Direction::up;
  path.push_back(is_up ? some : whole);
  path.push_back(is_up ? whole : some);
}

void Network::pass(std::vector<LinkId>& path, std::vector<Hop> hops, int num_parts) {
  if (hops.empty()) return;
  std::ranges::sort(hops);
  if (hops.front() == hops.back())
    return path.push_back(link(hops.front().name, hops.front().bandwidth));
  std::string name;
  BytesPerSecond rate{std::numeric_limits<double>::infinity()};
  int parts = 0;
  for (std::size_t i = 0; i < hops.size(); ++i) {
    parts = i > 0 && hops[i] == hops[i - 1] ? parts + 1 : 1;
    rate = std::min(rate, hops[i].bandwidth * (static_cast<double>(num_parts) / parts));
    name += (i == 0 ? "" : ", ") + hops[i].name;
  }
  path.push_back(link(name, rate));
}

LinkId Network::add_link(BytesPerSecond bandwidth, std::string name) {
  if (platform_ != nullptr) bandwidth = left_by_neighbours(*platform_, name, bandwidth);
  links_.push_back({bandwidth, std::move(name)});
  return LinkId(links_.size() - 1);
}

PathId Network::add_path(std::vector<LinkId> links) {
  paths_.push_back(std::move(links));
  return PathId(paths_.size() - 1);
}

std::optional<LinkId> Network::slowest_link(std::initializer_list<PathId> paths) const {
  std::optional<LinkId> slowest;
  for (const PathId each : paths)
    for (const LinkId link : path(each))
      if (!slowest || links_[link.index()].bandwidth < links_[slowest->index()].bandwidth)
        slowest = link;
  return slowest;
}

BytesPerSecond Network::rate_alone(std::initializer_list<PathId> paths) const {
  const std::optional<LinkId> slowest = slowest_link(paths);
  return slowest ? links_[slowest->index()].bandwidth
                 : BytesPerSecond{std::numeric_limits<double>::infinity()};
}

LinkId Network::link(const std::string& name, BytesPerSecond bandwidth) {
  if (const auto known = link_by_name_.find(name); known != link_by_name_.end())
    return known->second;
  return link_by_name_[name] = add_link(bandwidth, name);
}

PathId Network::shared_path(std::vector<LinkId> links) {
  const auto place = path_by_links_.lower_bound(links);
  if (place != path_by_links_.end() && place->first == links) return place->second;
  const PathId path = add_path(links);
  path_by_links_.emplace_hint(place, std::move(links), path);
  return path;
}

Network::PortDirection& Network::port_direction(const Attachment& at, Direction direction) {
  PortDirection& port =
      ports_[at.node.index()].ports[at.port].directions[static_cast<std::size_t>(direction)];
  if (port.links.empty()) port.links = new_links(at, direction);
  return port;
}

std::vector<LinkId> Network::new_links(const Attachment& at, Direction direction) {
  const LinkId node = node_link(at.node, direction);
  const std::vector<int>& nics = ports_[at.node.index()].ports[at.port].nics;
  const BytesPerSecond rate = rate_of_nics(*platform_, at.node, nics);
  if (rate >= links_[node.index()].bandwidth) return {node};
  const LinkId some = add_link(
      rate, name_of(at.node) + " nic" + text_of(nics) + ends[static_cast<std::size_t>(direction)]);
  if (direction == Direction::up) return {some, node};
  return {node, some};
}

LinkId Network::node_link(NodeId node, Direction direction) {
  std::optional<LinkId>& known = ports_[node.index()].all_nics[static_cast<std::size_t>(direction)];
  if (known) return *known;
  BytesPerSecond rate = node_bandwidth(*platform_, node);  // less what faults take
  for (const NicFault& fault : platform_->faults)
    if (fault.node == node)
      rate -= platform_->type_of(node).effective_nic_rate() * (1 - fault.share);
  known = add_link(rate, name_of(node) + ends[static_cast<std::size_t>(direction)]);
  return *known;
}

PathId Network::path_of(PortDirection& port) {
  if (!port.path) port.path = add_path(port.links);
  return *port.path;
}

std::optional<LinkId> Network::own_link(NodeId from, NodeId to) {
  const std::optional<BytesPerSecond> bandwidth = own_bandwidth(*platform_, from, to);
  if (!bandwidth) return std::nullopt;
  return link(name_of(from) + "->" + name_of(to), *bandwidth);
}

std::optional<BytesPerSecond> own_bandwidth(const Platform& platform, NodeId from, NodeId to) {
  for (const LinkOverride& link : platform.link_overrides)
    if (link.from == from && link.to == to) return link.bandwidth;
  if (!platform.matrix) return std::nullopt;
  const BandwidthMatrix& matrix = *platform.matrix;
  if (from.index() >= matrix.rate.size() || to.index() >= matrix.rate.size()) return std::nullopt;
  return matrix.rate[from.index()][to.index()] * matrix.rails;
}

BytesPerSecond left_by_neighbours(const Platform& platform, const std::string& link,
                                  BytesPerSecond bandwidth) {
  BytesPerSecond sent{};
  int flows = 1;
  for (const NeighbourFlow& flow : platform.neighbours)
    if (flow.link == link) {
      sent += std::min(flow.rate, bandwidth) * flow.busy;
      ++flows;
    }
  return std::max(bandwidth - sent, bandwidth / flows);
}

BytesPerSecond node_bandwidth(const Platform& platform, NodeId node) {
  const NodeType& type = platform.type_of(node);
  return type.effective_nic_rate() * type.nics;
}

}  // namespace windtunnel
