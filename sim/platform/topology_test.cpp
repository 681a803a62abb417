#include "platform/topology.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "platform/testing.hpp"

using namespace windtunnel;

namespace {

/// Nodes of 4 NICs of 5 GB/s: 20 GB/s a node.
Platform platform_of(int num_nodes) {
  NodeType type;
  type.count = num_nodes;
  type.gpus = 8;
  type.nics = 4;
  type.nic_rate = 5_GBps;
  Platform platform;
  platform.node_types = {type};
  return platform;
}

std::vector<NodeId> first_nodes(int count) {
  std::vector<NodeId> nodes;
  for (int node = 0; node < count; ++node) nodes.emplace_back(node);
  return nodes;
}

}  // namespace

TEST_CASE("a non-blocking fabric carries what the NICs of half of the nodes carry") {
  const Platform platform = platform_of(6);
  const Topology topology(platform, first_nodes(6));
  CHECK(topology.bisection_bandwidth() == 60_GBps);  // 3 nodes * 20 GB/s
  CHECK(topology.max_flow({NodeId(0)}, {NodeId(1), NodeId(2)}) == 20_GBps);
  CHECK(topology.max_flow({NodeId(0), NodeId(1), NodeId(2)}, {NodeId(5)}) == 20_GBps);
}

TEST_CASE("with an odd number of nodes the smaller half decides") {
  const Platform platform = platform_of(5);
  CHECK(Topology(platform, first_nodes(5)).bisection_bandwidth() == 40_GBps);
}

TEST_CASE("oversubscription halves what crosses the leaves and nothing else") {
  Platform platform = platform_of(8);
  platform.fabric.nodes_per_leaf = 4;
  platform.fabric.oversubscription = 2;
  // 4 nodes * 20 GB/s / 2 = 40 GB/s of uplinks.
  CHECK(Topology(platform, first_nodes(8)).bisection_bandwidth() == 40_GBps);
  CHECK(Topology(platform, first_nodes(4)).bisection_bandwidth() == 40_GBps);  // inside leaf 0
  // Half and half over both leaves: inside each leaf 2 nodes send 40 GB/s to the 2 others.
  const Topology mixed(platform, {NodeId(0), NodeId(1), NodeId(4), NodeId(5), NodeId(2), NodeId(3),
                                  NodeId(6), NodeId(7)});
  CHECK(mixed.bisection_bandwidth() == 80_GBps);
}

TEST_CASE("a slow measured pair limits the cut it crosses, in its direction") {
  Platform platform = platform_of(2);
  platform.matrix = BandwidthMatrix{{{0_GBps, 3_GBps}, {4_GBps, 0_GBps}}, 4};
  const Topology topology(platform, first_nodes(2));
  CHECK(topology.max_flow({NodeId(0)}, {NodeId(1)}) == 12_GBps);  // 4 rails * 3 GB/s
  CHECK(topology.max_flow({NodeId(1)}, {NodeId(0)}) == 16_GBps);
  CHECK(topology.bisection_bandwidth() == 12_GBps);
}

TEST_CASE("an override leaves the other pairs to the NICs") {
  Platform platform = platform_of(4);
  platform.link_overrides = {{NodeId(0), NodeId(2), 1_GBps}};
  const Topology topology(platform, first_nodes(4));
  // Node 0 reaches node 2 at 1 GB/s and node 3 freely; node 3 takes 20 GB/s, node 2 20 GB/s from
  // node 1.
  CHECK(topology.bisection_bandwidth() == 40_GBps);
  CHECK(topology.max_flow({NodeId(0)}, {NodeId(2)}) == 1_GBps);
}

TEST_CASE("nodes without a network are not connected") {
  Platform platform = platform_of(3);
  CHECK(Topology(platform, first_nodes(3)).is_connected());
  platform.node_types[0].nic_rate = 0_GBps;
  CHECK_FALSE(Topology(platform, first_nodes(3)).is_connected());
  CHECK(Topology(platform, first_nodes(1)).is_connected());
}

TEST_CASE("the measured matrix of the high-end Pipette cluster bounds its bisection") {
  const Platform platform = testing::shipped_platform("pipette-a100-hdr");
  const Topology topology(platform, first_nodes(16));
  // 8 nodes * 4 NICs * 25 GB/s * 0.8 = 640 GB/s; 64 pairs of at least 4 * 16.3 GB/s do not bind.
  CHECK(topology.bisection_bandwidth() / 640_GBps == doctest::Approx(1).epsilon(1e-9));
  CHECK(topology.max_flow({NodeId(0)}, {NodeId(1)}) / BytesPerSecond{4 * 16716.9e6} ==
        doctest::Approx(1).epsilon(1e-9));  // send row 0, column 1 of the source's table
}

TEST_CASE("a DGX-1 has 1, 4 and 6 rings among its first 2, 4 and 8 GPUs") {
  const Interconnect mesh = testing::shipped_platform("dgx1-v100").node_types[0].interconnect;
  CHECK(num_rings(mesh, {0, 1}) == 1);
  CHECK(num_rings(mesh, {0, 1, 2, 3}) == 4);
  CHECK(num_rings(mesh, {0, 1, 2, 3, 4, 5, 6, 7}) == 6);
  CHECK(num_rings(mesh, {4, 5, 6, 7}) == 4);  // the other half is the same
  CHECK(num_rings(mesh, {3, 4}) == 0);        // GPUs 3 and 4 share no lane
}

TEST_CASE("rings of the four-GPU nodes") {
  const Interconnect jean_zay =
      testing::shipped_platform("jean-zay-v100").node_types[0].interconnect;
  CHECK(num_rings(jean_zay, {0, 1}) == 2);
  CHECK(num_rings(jean_zay, {0, 1, 2, 3}) == 6);
  // 6 rings * 20.67 GB/s = 124.02 GB/s; the benchmark shows 124 at 4 GB.
  CHECK(6 * jean_zay.saturated_bandwidth / 124_GBps == doctest::Approx(1).epsilon(1e-3));
  const Interconnect lassen = testing::shipped_platform("lassen-v100").node_types[0].interconnect;
  CHECK(num_rings(lassen, {0, 1}) == 3);
  CHECK(num_rings(lassen, {0, 1, 2, 3}) ==
        1);  // what crosses the sockets, not the 3 lanes of a GPU
}
