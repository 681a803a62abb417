#pragma once

#include <vector>

#include "platform/network.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

/// What a platform's network could carry between some of its nodes, whatever is sent: the graph of
/// NICs, links of pairs, leaf switches and core, with Boost.Graph's flow and connectivity
/// algorithms on it.
///
/// Where the leaf switches are oversubscribed, links of single pairs (matrix, overrides) are left
/// out, so the result is then an upper bound: which pair a byte belongs to is lost at the leaf.
class Topology {
 public:
  Topology(const Platform& platform, std::vector<NodeId> nodes);

  /// The most that all `sources` together can send to all `targets` together, one way (maximum flow
  /// = minimum cut).
  BytesPerSecond max_flow(const std::vector<NodeId>& sources,
                          const std::vector<NodeId>& targets) const;
  /// max_flow() from the first half of the nodes to the second half, in the order given; the
  /// smaller direction.
  BytesPerSecond bisection_bandwidth() const;
  /// Whether every node can reach every other, directly or through others.
  bool is_connected() const;

 private:
  struct Arc {
    int from, to;
    BytesPerSecond bandwidth;
  };
  void add_tapered_leaves(const Platform& platform);
  void add_pairs(const Platform& platform);
  void add_core();
  int add_vertex() { return num_vertices_++; }
  int position(NodeId node) const;

  std::vector<NodeId> nodes_;
  std::vector<BytesPerSecond> node_bandwidth_;  ///< all NICs of nodes_[i], one way
  std::vector<Arc> arcs_;                       ///< of the fabric
  int num_vertices_;
};

/// Rings that a collective over these GPUs of a mesh can run at once: the fewest
/// lanes across any cut of the group (Boost's Stoer-Wagner). On a DGX-1V this is the fewest lanes
/// of a GPU inside the group, 1, 4 and 6 for the first 2, 4 and 8 GPUs, which is what the measured
/// all-reduce shows (V100, 22.3 GB/s a ring; docs/model.md); between two sockets it is the lanes that
/// cross. 0: the group is not connected by lanes.
int num_rings(const Interconnect& interconnect, const std::vector<int>& gpus);

}  // namespace windtunnel
