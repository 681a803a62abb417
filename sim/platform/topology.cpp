#include "platform/topology.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <boost/graph/stoer_wagner_min_cut.hpp>
#include <boost/graph/strong_components.hpp>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

/// Whole bytes per second, so that the flow algorithms terminate exactly.
using Capacity = long long;
using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<
        boost::edge_capacity_t, Capacity,
        boost::property<boost::edge_residual_capacity_t, Capacity,
                        boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
using LaneGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property,
                          boost::property<boost::edge_weight_t, int>>;

/// More than any cluster carries, and far from overflow when added up.
constexpr Capacity unlimited = std::numeric_limits<Capacity>::max() / 1'000'000;

Capacity to_capacity(BytesPerSecond bandwidth) {
  // Boost needs a plain integer; this file is the one place that leaves the unit.
  const double bytes_per_second = std::round(bandwidth.value());
  return bytes_per_second < static_cast<double>(unlimited) ? static_cast<Capacity>(bytes_per_second)
                                                           : unlimited;
}

constexpr BytesPerSecond unlimited_bandwidth{std::numeric_limits<double>::infinity()};

// A node is two vertices, so that traffic between others does not pass through it.
int send_vertex(int node) { return 2 * node; }
int receive_vertex(int node) { return 2 * node + 1; }

std::size_t to_vertex(int index) { return static_cast<std::size_t>(index); }

void add_arc(FlowGraph& graph, int from, int to, Capacity capacity) {
  const auto arc = boost::add_edge(to_vertex(from), to_vertex(to), graph).first;
  const auto back = boost::add_edge(to_vertex(to), to_vertex(from), graph).first;
  boost::put(boost::edge_capacity, graph, arc, capacity);
  boost::put(boost::edge_capacity, graph, back, Capacity{0});
  boost::put(boost::edge_reverse, graph, arc, back);
  boost::put(boost::edge_reverse, graph, back, arc);
}

}  // namespace

Topology::Topology(const Platform& platform, std::vector<NodeId> nodes)
    : nodes_(std::move(nodes)), num_vertices_(2 * static_cast<int>(nodes_.size())) {
  WT_EXPECT(!nodes_.empty());
  for (NodeId node : nodes_) node_bandwidth_.push_back(node_bandwidth(platform, node));
  if (has_tapered_leaves(platform.fabric))
    add_tapered_leaves(platform);
  else if (platform.matrix || !platform.link_overrides.empty())
    add_pairs(platform);
  else
    add_core();
}

BytesPerSecond Topology::max_flow(const std::vector<NodeId>& sources,
                                  const std::vector<NodeId>& targets) const {
  FlowGraph graph(static_cast<std::size_t>(num_vertices_) + 2);
  const int source = num_vertices_;
  const int target = num_vertices_ + 1;
  const auto nics = [&](int node) {
    return to_capacity(node_bandwidth_[static_cast<std::size_t>(node)]);
  };
  for (const Arc& arc : arcs_) add_arc(graph, arc.from, arc.to, to_capacity(arc.bandwidth));
  for (NodeId node : sources)
    add_arc(graph, source, send_vertex(position(node)), nics(position(node)));
  for (NodeId node : targets)
    add_arc(graph, receive_vertex(position(node)), target, nics(position(node)));
  const Capacity flow = boost::push_relabel_max_flow(graph, to_vertex(source), to_vertex(target));
  return BytesPerSecond{static_cast<double>(flow)};
}

BytesPerSecond Topology::bisection_bandwidth() const {
  WT_EXPECT(nodes_.size() >= 2);
  const auto middle = nodes_.begin() + static_cast<std::ptrdiff_t>(nodes_.size() / 2);
  const std::vector<NodeId> first(nodes_.begin(), middle);
  const std::vector<NodeId> second(middle, nodes_.end());
  return std::min(max_flow(first, second), max_flow(second, first));
}

bool Topology::is_connected() const {
  Graph graph(to_vertex(num_vertices_));
  for (const Arc& arc : arcs_)
    if (arc.bandwidth > BytesPerSecond{})
      boost::add_edge(to_vertex(arc.from), to_vertex(arc.to), graph);
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (node_bandwidth_[i] > BytesPerSecond{})
      boost::add_edge(2 * i + 1, 2 * i, graph);  // what a node receives it can send
  std::vector<std::size_t> component(to_vertex(num_vertices_));
  boost::strong_components(graph, boost::make_iterator_property_map(
                                      component.begin(), boost::get(boost::vertex_index, graph)));
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (component[2 * i] != component[0] || component[2 * i + 1] != component[0])
      return nodes_.size() == 1;
  return true;
}

void Topology::add_tapered_leaves(const Platform& platform) {
  struct LeafSwitch {
    int from_nodes, to_nodes;
  };
  const int core = add_vertex();
  const NodeId last = *std::max_element(nodes_.begin(), nodes_.end());
  const int num_nodes = platform.num_nodes(static_cast<int>(last.index()) + 1);
  std::map<int, LeafSwitch> leaves;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const int leaf = static_cast<int>(nodes_[i].index()) / platform.fabric.nodes_per_leaf;
    if (!leaves.contains(leaf)) {
      const LeafSwitch added{add_vertex(), add_vertex()};
      const BytesPerSecond uplinks = leaf_bandwidth(platform, num_nodes, leaf);
      arcs_.push_back({added.from_nodes, added.to_nodes, unlimited_bandwidth});
      arcs_.push_back({added.from_nodes, core, uplinks});
      arcs_.push_back({core, added.to_nodes, uplinks});
      leaves.emplace(leaf, added);
    }
    const LeafSwitch& at = leaves.at(leaf);
    const int node = static_cast<int>(i);
    arcs_.push_back({send_vertex(node), at.from_nodes, unlimited_bandwidth});
    arcs_.push_back({at.to_nodes, receive_vertex(node), unlimited_bandwidth});
  }
}

void Topology::add_pairs(const Platform& platform) {
  const int count = static_cast<int>(nodes_.size());
  for (int from = 0; from < count; ++from)
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      const auto own = own_bandwidth(platform, nodes_[static_cast<std::size_t>(from)],
                                     nodes_[static_cast<std::size_t>(to)]);
      arcs_.push_back({send_vertex(from), receive_vertex(to), own.value_or(unlimited_bandwidth)});
    }
}

void Topology::add_core() {
  const int core = add_vertex();
  for (int node = 0; node < static_cast<int>(nodes_.size()); ++node) {
    arcs_.push_back({send_vertex(node), core, unlimited_bandwidth});
    arcs_.push_back({core, receive_vertex(node), unlimited_bandwidth});
  }
}

int Topology::position(NodeId node) const {
  const auto found = std::find(nodes_.begin(), nodes_.end(), node);
  WT_EXPECT(found != nodes_.end());
  return static_cast<int>(found - nodes_.begin());
}

int num_rings(const Interconnect& interconnect, const std::vector<int>& gpus) {
  WT_EXPECT(gpus.size() >= 2);
  LaneGraph graph(gpus.size());
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const auto a = static_cast<std::size_t>(gpus[i]);
      const auto b = static_cast<std::size_t>(gpus[j]);
      if (const int lanes = interconnect.lanes.at(a).at(b); lanes > 0)
        boost::add_edge(i, j, lanes, graph);
    }
  return boost::stoer_wagner_min_cut(graph, boost::get(boost::edge_weight, graph));
}

}  // namespace windtunnel
