#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace windtunnel {

/// Which pass (or exchange) of a schedule can begin only after which other: nodes and the edges between them.
class WaitGraph {
 public:
  using Node = std::size_t;
  enum class Why : unsigned char {
    input,  ///< it needs what the other makes
    order,  ///< the other stands before it in the order of its device
  };
  /// One edge, seen from its end.
  struct Wait {
    Node later, earlier;
    Why why;
  };
  using Cycle = std::vector<Wait>;  ///< each wait's `earlier` is the next one's `later`

  explicit WaitGraph(std::size_t num_nodes) : graph_(num_nodes) {}
  std::size_t size() const { return boost::num_vertices(graph_); }
  void add(const Wait& wait) { boost::add_edge(wait.later, wait.earlier, wait.why, graph_); }

  /// A shortest cycle through one node of each knot of nodes that wait for each other, of the first knots if there are many; none:
  /// nobody waits for ever.
  std::vector<Cycle> cycles() const;
  /// Every node behind those it waits for. There must be no cycle.
  std::vector<Node> in_order() const;
  /// The waits of `node`.
  std::vector<Wait> waits_of(Node node) const;

 private:
  using Graph =
      boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Why>;
  Cycle shortest_cycle(Node through, const std::vector<std::size_t>& knot_of) const;

  Graph graph_;
};

/// "stage 1 B0 waits for stage 2 B0, which comes after stage 2 F1, which waits for stage 1 F1, which comes after stage 1 B0".
std::string cycle_text(const WaitGraph::Cycle& cycle,
                       const std::function<std::string(WaitGraph::Node)>& name);

}  // namespace windtunnel
