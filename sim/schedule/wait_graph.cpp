#include "schedule/wait_graph.hpp"

#include <algorithm>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>
#include <deque>
#include <iterator>
#include <map>
#include <unordered_map>

#include "core/contracts.hpp"
#include "core/problem.hpp"

namespace windtunnel {

std::vector<WaitGraph::Wait> WaitGraph::waits_of(Node node) const {
  std::vector<Wait> waits;
  for (auto [edge, end] = boost::out_edges(node, graph_); edge != end; ++edge)
    waits.push_back({node, boost::target(*edge, graph_), graph_[*edge]});
  return waits;
}

std::vector<WaitGraph::Node> WaitGraph::in_order() const {
  std::vector<Node> nodes;
  nodes.reserve(size());
  // Edges lead to what is waited for, which topological_sort writes first.
  boost::topological_sort(graph_, std::back_inserter(nodes));
  return nodes;
}

std::vector<WaitGraph::Cycle> WaitGraph::cycles() const {
  std::vector<std::size_t> knot_of(size());
  const std::size_t num_knots = boost::strong_components(
      graph_, boost::make_iterator_property_map(knot_of.begin(), get(boost::vertex_index, graph_)));
  // A knot may hold the whole schedule, and there may be as many knots as microbatches: a few of each will do.
  constexpr int most_tried = 16;
  constexpr std::size_t most_knots = Problems::max_reported;
  std::vector<int> members(num_knots), tried(num_knots);
  for (const std::size_t knot : knot_of) ++members[knot];
  std::map<std::size_t, Cycle> shortest;
  for (Node node = 0; node < size(); ++node) {
    const std::size_t knot = knot_of[node];
    if (members[knot] == 1 || tried[knot]++ >= most_tried) continue;
    if (shortest.size() == most_knots && shortest.count(knot) == 0) continue;
    Cycle cycle = shortest_cycle(node, knot_of);
    Cycle& best = shortest[knot];
    if (best.empty() || cycle.size() < best.size()) best = std::move(cycle);
  }
  std::vector<Cycle> cycles;
  for (auto& [knot, cycle] : shortest) cycles.push_back(std::move(cycle));
  return cycles;
}

/// Breadth first inside the node's knot, which has other nodes as well.
WaitGraph::Cycle WaitGraph::shortest_cycle(Node through,
                                           const std::vector<std::size_t>& knot_of) const {
  std::unordered_map<Node, Wait> reached_by;
  std::deque<Node> front{through};
  while (reached_by.count(through) == 0) {
    const Node node = front.front();
    front.pop_front();
    for (const Wait& wait : waits_of(node)) {
      if (knot_of[wait.earlier] != knot_of[through]) continue;
      if (reached_by.try_emplace(wait.earlier, wait).second) front.push_back(wait.earlier);
    }
  }
  Cycle cycle;
  Node node = through;
  do {
    cycle.push_back(reached_by.at(node));
    node = cycle.back().later;
  } while (node != through);
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

std::string cycle_text(const WaitGraph::Cycle& cycle,
                       const std::function<std::string(WaitGraph::Node)>& name) {
  using Why = WaitGraph::Why;
  WT_EXPECT(!cycle.empty());
  // Begins with a wait for an input, so that each run of neighbours in an order is told as one.
  const auto begins = std::find_if(cycle.begin(), cycle.end(), [](const WaitGraph::Wait& wait) {
    return wait.why == Why::input;
  });
  WaitGraph::Cycle turned(begins, cycle.end());
  turned.insert(turned.end(), cycle.begin(), begins);
  std::string text = name(turned.front().later);
  for (std::size_t i = 0; i < turned.size(); ++i) {
    const bool runs_on =
        i + 1 < turned.size() && turned[i].why == Why::order && turned[i + 1].why == Why::order;
    if (runs_on) continue;
    text += (i > 0 ? ", which " : " ");
    text += turned[i].why == Why::input ? "waits for " : "comes after ";
    text += name(turned[i].earlier);
  }
  return text;
}

}  // namespace windtunnel
