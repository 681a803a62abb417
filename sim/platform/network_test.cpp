#include "platform/network.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "core/contracts.hpp"
#include "platform/network_fixtures.hpp"
#include "platform/testing.hpp"

using namespace windtunnel;
using testing::gpus;
using testing::path_text;
using testing::platform_with;
using testing::route_text;

TEST_CASE("eight GPUs on one NIC share one link") {
  const Platform platform = platform_with(1);
  Network network(platform, 4);
  const Route first = network.route(gpus(0, 0, 1), gpus(1, 0, 1));
  const Route last = network.route(gpus(0, 7, 1), gpus(1, 7, 1));
  CHECK(first.up == last.up);
  CHECK(first.down == last.down);
  CHECK(network.links().size() == 2);
  CHECK(path_text(network, first.up) == "node0 up 5");
  CHECK(path_text(network, first.down) == "node1 down 5");
  CHECK(first.latency == 20_us);
}

TEST_CASE("GPU g of n uses NIC floor(g nics / n), and the node's NICs together are a link") {
  const Platform platform = platform_with(4);
  Network network(platform, 4);
  // GPUs 2 and 3 use NIC 1; GPUs 2 to 5 use NICs 1 and 2; all eight use all four, which is the
  // node's link.
  CHECK(route_text(network, gpus(0, 2, 1), gpus(1, 2, 4)) ==
        "node0 nic1 up 5; node0 up 20 | node1 down 20; node1 nic1-2 down 10");
  CHECK(network.route(gpus(0, 3, 1), gpus(1, 2, 4)).up ==
        network.route(gpus(0, 2, 2), gpus(1, 0, 8)).up);
  CHECK(route_text(network, gpus(0, 0, 8), gpus(1, 0, 8)) == "node0 up 20 | node1 down 20");
}

TEST_CASE("a GPU with two NICs of its own uses both") {
  const Platform platform = platform_with(16);
  Network network(platform, 4);
  CHECK(route_text(network, gpus(0, 7, 1), gpus(1, 0, 8)) ==
        "node0 nic14-15 up 10; node0 up 80 | node1 down 80");
}

TEST_CASE("the two directions of a link are two links") {
  const Platform platform = platform_with(1);
  Network network(platform, 4);
  const Route there = network.route(gpus(0, 0, 8), gpus(1, 0, 8));
  const Route back = network.route(gpus(1, 0, 8), gpus(0, 0, 8));
  CHECK(path_text(network, there.up) == "node0 up 5");
  CHECK(path_text(network, back.down) == "node0 down 5");
  CHECK(network.links().size() == 4);
}

TEST_CASE("a measured pair has its own link, rails times the rate, one way") {
  Platform platform = platform_with(4);
  platform.matrix = BandwidthMatrix{{{0_GBps, 3_GBps}, {4_GBps, 0_GBps}}, 4};
  Network network(platform, 4);
  CHECK(route_text(network, gpus(0, 0, 8), gpus(1, 0, 8)) ==
        "node0 up 20; node0->node1 12 | node1 down 20");
  CHECK(route_text(network, gpus(1, 0, 8), gpus(0, 0, 8)) ==
        "node1 up 20; node1->node0 16 | node0 down 20");
}

TEST_CASE("an override beats the matrix and counts no rails") {
  Platform platform = platform_with(4);
  platform.matrix = BandwidthMatrix{{{0_GBps, 3_GBps}, {4_GBps, 0_GBps}}, 4};
  platform.link_overrides = {{NodeId(0), NodeId(1), 2_GBps}};
  Network network(platform, 4);
  CHECK(route_text(network, gpus(0, 0, 8), gpus(1, 0, 8)) ==
        "node0 up 20; node0->node1 2 | node1 down 20");
  CHECK(route_text(network, gpus(1, 0, 8), gpus(0, 0, 8)) ==
        "node1 up 20; node1->node0 16 | node0 down 20");
}

TEST_CASE("the slowest NIC of a message decides, and what others of the node send has the rest") {
  Platform platform = platform_with(4);  // 4 NICs of 5 GB/s, two GPUs on each
  platform.faults = {{NodeId(0), 1, 0.6}};
  Network network(platform, 4);
  // All: 4 NICs, each with what NIC 1 carries, 3 GB/s, of 18 GB/s. NICs 0 and 1 carry twice 3, 2 and 3 twice 5.
  CHECK(route_text(network, gpus(0, 0, 8), gpus(1, 0, 8)) ==
        "node0 nic0-3 up 12; node0 up 18 | node1 down 20");
  CHECK(route_text(network, gpus(0, 0, 4), gpus(1, 0, 8)) ==
        "node0 nic0-1 up 6; node0 up 18 | node1 down 20");
  CHECK(route_text(network, gpus(1, 0, 8), gpus(0, 4, 4)) ==
        "node1 up 20 | node0 down 18; node0 nic2-3 down 10");
}

TEST_CASE("a neighbour takes its mean rate of a link, and no more than its fair share") {
  Platform platform = platform_with(1);
  platform.neighbours = {{"node0 up", 2_GBps, 0.5}};
  const auto up = [&platform] {
    Network network(platform, 4);
    return route_text(network, gpus(0, 0, 8), gpus(1, 0, 8));
  };
  CHECK(up() == "node0 up 4 | node1 down 5");  // 5 - 2 * 0.5
  platform.neighbours.push_back({"node0 up", 4_GBps});
  platform.neighbours.push_back({"node7 up", 1_GBps});
  CHECK(up() == "node0 up 2 | node1 down 5");  // a third, as nothing would be left
}

TEST_CASE("GPUs of a lost NIC use the next one of their node") {
  Platform platform = platform_with(4);
  platform.faults = {{NodeId(0), 3, 0}};
  Network network(platform, 4);
  CHECK(route_text(network, gpus(0, 0, 8), gpus(1, 0, 8)) == "node0 up 15 | node1 down 20");
  CHECK(route_text(network, gpus(0, 6, 2), gpus(1, 6, 2)) ==
        "node0 nic0 up 5; node0 up 15 | node1 down 20; node1 nic3 down 5");
}

TEST_CASE("only traffic between leaves crosses the oversubscribed uplinks") {
  Platform platform = platform_with(4);
  platform.fabric.values = {{"nodes_per_leaf", 2.0}, {"oversubscription", 4.0}};
  Network network(platform, 4);
  // 2 nodes * 4 NICs * 5 GB/s / 4 = 10 GB/s.
  CHECK(route_text(network, gpus(0, 0, 8), gpus(1, 0, 8)) == "node0 up 20 | node1 down 20");
  CHECK(route_text(network, gpus(0, 0, 8), gpus(3, 0, 8)) ==
        "node0 up 20; leaf0 up 10 | leaf1 down 10; node3 down 20");
}

TEST_CASE(
    "where the count is open there are as many nodes as the job takes: its last leaf may be half "
    "empty") {
  Platform platform = platform_with(4);
  platform.fabric.values = {{"nodes_per_leaf", 2.0}, {"oversubscription", 4.0}};
  const auto between_leaves = [&](int nodes_in_use) {
    Network network(platform, nodes_in_use);
    return route_text(network, gpus(0, 0, 8), gpus(2, 0, 8));
  };
  CHECK(between_leaves(4) == "node0 up 20; leaf0 up 10 | leaf1 down 10; node2 down 20");
  CHECK(between_leaves(3) == "node0 up 20; leaf0 up 10 | leaf1 down 5; node2 down 20");
  // The fourth node of the cluster is there, and idle.
  platform.node_types.front().count = 4;
  CHECK(between_leaves(3) == "node0 up 20; leaf0 up 10 | leaf1 down 10; node2 down 20");
}

TEST_CASE("a job on other nodes than the first has their links, below their leaves") {
  Platform platform = platform_with(4);
  platform.fabric.values = {{"nodes_per_leaf", 2.0}, {"oversubscription", 4.0}};
  platform.faults = {{NodeId{1}, 0, 0.5}, {NodeId{3}, 0, 0.2}};
  platform.link_overrides = {{NodeId{0}, NodeId{3}, 3_GBps}, {NodeId{1}, NodeId{0}, 1_GBps}};
  // Without node1 the job's nodes 0, 1 and 2 are 0, 2 and 3: two leaves, each with two nodes of 20 GB/s over 4.
  const Platform job = on_nodes(platform, {NodeId{0}, NodeId{2}, NodeId{3}});
  CHECK(job.available_nodes() == 3);
  Network network(job, 3);
  CHECK(route_text(network, gpus(0, 0, 8), gpus(1, 0, 8)) ==
        "node0 up 20; leaf0 up 10 | leaf1 down 10; node2 down 20");
  // NIC 0 of node3 has 1 of its 5 GB/s, and a message over all four waits for it: 4 of the 16 that the node has.
  CHECK(route_text(network, gpus(1, 0, 8), gpus(2, 0, 8)) ==
        "node2 up 20 | node3 down 16; node3 nic0-3 down 4");
  CHECK(
      route_text(network, gpus(0, 0, 8), gpus(2, 0, 8)).starts_with("node0 up 20; node0->node3 3"));
  CHECK(unevenness(job, 2) == "its leaf switches are oversubscribed");
  CHECK(unevenness(platform_with(4), 2).empty());
}

TEST_CASE("a non-blocking fabric has no links of its own") {
  Platform platform = platform_with(4);
  platform.fabric.values = {{"nodes_per_leaf", 2.0}};
  Network network(platform, 4);
  CHECK(route_text(network, gpus(0, 0, 8), gpus(3, 0, 8)) == "node0 up 20 | node3 down 20");
}

TEST_CASE("endpoints on the same NICs share links and paths, however they are attached") {
  const Platform platform = platform_with(4);  // two GPUs a NIC
  Network network(platform, 4);
  const auto first = network.attach(NodeId(0), {0});
  const auto second = network.attach(NodeId(0), {1});
  const auto target = network.attach(NodeId(1), {0});
  CHECK(network.links().empty());
  CHECK(network.route(first, target).up == network.route(second, target).up);
  CHECK(network.route(first, target).down == network.route(gpus(0, 4, 1), gpus(1, 1, 1)).down);
  CHECK(network.links().size() ==
        5);  // NIC 0 and NIC 2 of node 0, NIC 0 of node 1, both nodes: 2 + 1 + 2
}

TEST_CASE("a route inside a node is a mistake of ours") {
  const Platform platform = platform_with(4);
  Network network(platform, 4);
  CHECK_THROWS_AS(network.route(gpus(0, 0, 4), gpus(0, 4, 4)), ContractViolation);
}

TEST_CASE("GPUs apart from each other use NICs apart from each other") {
  const Platform platform = platform_with(4);  // two GPUs a NIC
  Network network(platform, 4);
  CHECK(route_text(network, {NodeId(0), {0, 4}}, {NodeId(1), {2, 3}}) ==
        "node0 nic0,2 up 10; node0 up 20 | node1 down 20; node1 nic1 down 5");
}

TEST_CASE("a node says which NICs its GPUs use, in any order") {
  Platform platform = platform_with(4);
  // GPUs 0 to 3 on NIC 3, GPUs 4 to 7 on NICs 0 and 1 together; NIC 2 is for storage.
  platform.node_types.front().nic_of_gpu = {{3}, {3}, {3}, {3}, {0, 1}, {0, 1}, {0, 1}, {0, 1}};
  Network network(platform, 4);
  CHECK(route_text(network, gpus(0, 0, 4), gpus(1, 4, 4)) ==
        "node0 nic3 up 5; node0 up 20 | node1 down 20; node1 nic0-1 down 10");
  CHECK(route_text(network, gpus(0, 0, 8), gpus(1, 0, 8)) ==
        "node0 nic0,1,3 up 15; node0 up 20 | node1 down 20; node1 nic0,1,3 down 15");
}

TEST_CASE(
    "parallel links: the fullest of those that a message has decides, and together they carry what "
    "there is") {
  const Platform platform = platform_with(1);
  Network network(platform, 2);
  const Network::Bundle uplinks{"leaf0", "uplink", 10_GBps, 4};
  const auto text = [&](const std::vector<int>& members, Network::Direction direction) {
    std::vector<LinkId> path;
    network.pass(path, uplinks, members, direction);
    return path_text(network, network.add_path(path));
  };
  CHECK(text({2}, Network::Direction::up) == "leaf0 uplink2 up 10; leaf0 up 40");
  CHECK(text({0, 3}, Network::Direction::down) == "leaf0 down 40; leaf0 uplink0,3 down 20");
  CHECK(text({0, 1, 2, 3}, Network::Direction::up) == "leaf0 up 40");
  // Three quarters of the message share one uplink: 10 GB/s / (3/4).
  CHECK(text({1, 1, 1, 2}, Network::Direction::up) == "leaf0 uplink1,1,1,2 up 13; leaf0 up 40");
}

namespace {

std::vector<int> first_gpus(int count) {
  std::vector<int> gpus(static_cast<std::size_t>(count));
  std::iota(gpus.begin(), gpus.end(), 0);
  return gpus;
}

using Lanes = std::vector<std::vector<int>>;

/// The most of `cycles` from number `next` on that the lanes left over have room for: every choice is tried.
int most_packed(const std::vector<std::vector<int>>& cycles, std::size_t next, Lanes& lanes) {
  const auto on_each_arc = [&](const std::vector<int>& cycle, int change) {
    bool fits = true;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      int& free = lanes[static_cast<std::size_t>(cycle[i])]
                       [static_cast<std::size_t>(cycle[(i + 1) % cycle.size()])];
      free += change;
      fits = fits && free >= 0;
    }
    return fits;
  };
  int most = 0;
  for (std::size_t i = next; i < cycles.size(); ++i) {
    if (on_each_arc(cycles[i], -1)) most = std::max(most, 1 + most_packed(cycles, i, lanes));
    on_each_arc(cycles[i], 1);
  }
  return most;
}

/// The same number as num_rings(), from all orders of the group.
int rings_by_trying(const Interconnect& mesh, std::vector<int> gpus) {
  std::vector<std::vector<int>> cycles;
  Lanes lanes = mesh.lanes;
  do {
    bool exists = true;
    for (std::size_t i = 0; i < gpus.size(); ++i)
      exists = exists && lanes[static_cast<std::size_t>(gpus[i])]
                              [static_cast<std::size_t>(gpus[(i + 1) % gpus.size()])] > 0;
    if (exists) cycles.push_back(gpus);
  } while (std::next_permutation(gpus.begin() + 1, gpus.end()));
  return most_packed(cycles, 0, lanes);
}

}  // namespace

TEST_CASE("the first 2 to 8 GPUs of a DGX-1 have 1, 2, 4, 0, 2, 4 and 6 rings") {
  const Interconnect mesh = testing::shipped_platform("dgx1-v100").node_types[0].interconnect;
  const std::vector<int> rings = {1, 2, 4, 0, 2, 4, 6};
  for (int count = 2; count <= 8; ++count) {
    CAPTURE(count);
    CHECK(num_rings(mesh, first_gpus(count)) == rings[static_cast<std::size_t>(count - 2)]);
  }
  CHECK(num_rings(mesh, {4, 5, 6, 7}) == 4);  // the other half is the same
  CHECK(num_rings(mesh, {3, 4}) == 0);        // GPUs 3 and 4 share no lane
  CHECK(num_relayed_rings(mesh, first_gpus(5)) == 2);
}

TEST_CASE("rings of every group of a DGX-1") {
  const Interconnect mesh = testing::shipped_platform("dgx1-v100").node_types[0].interconnect;
  constexpr int gpus_in_node = 8, most_tried = 5;
  for (int set = 0; set < 1 << gpus_in_node; ++set) {
    std::vector<int> group;
    for (int gpu = 0; gpu < gpus_in_node; ++gpu)
      if ((set >> gpu & 1) == 1) group.push_back(gpu);
    if (group.size() < 2) continue;
    CAPTURE(set);
    const int rings = num_rings(mesh, group);
    CHECK(rings <= num_relayed_rings(mesh, group));
    if (group.size() <= most_tried) CHECK(rings == rings_by_trying(mesh, group));
    // The order in which the GPUs are named changes nothing.
    std::vector<int> reversed(group.rbegin(), group.rend());
    CHECK(num_rings(mesh, reversed) == rings);
  }
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
  // The link between the sockets, not the 3 lanes of a GPU, and that only there and back again.
  CHECK(num_rings(lassen, {0, 1, 2, 3}) == 0);
  CHECK(num_relayed_rings(lassen, {0, 1, 2, 3}) == 1);
}
