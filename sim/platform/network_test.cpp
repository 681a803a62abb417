#include "platform/network.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/contracts.hpp"
#include "platform/network_fixtures.hpp"

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
  // Of a cluster of four the fourth node is there, and idle.
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
