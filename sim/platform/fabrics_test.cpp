// Each kind of fabric on a few nodes with round numbers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "platform/fabric_parts.hpp"
#include "platform/network_fixtures.hpp"

namespace windtunnel {
namespace {

using testing::gpus;
using testing::route_text;
using Numbers = std::vector<double>;

/// Nodes of 8 GPUs on `nics` NICs of 5 GB/s each, joined by a fabric of this kind.
Platform joined_by(const std::string& kind, std::map<std::string, FabricValue, std::less<>> values,
                   int nics = 4) {
  Platform platform = testing::platform_with(nics);
  const auto found = std::find_if(fabric_kinds().begin(), fabric_kinds().end(),
                                  [&](const FabricKind& each) { return each.name == kind; });
  REQUIRE(found != fabric_kinds().end());
  platform.fabric.kind = &*found;
  platform.fabric.values = std::move(values);
  platform.node_types.front().interconnect.point_to_point_latency = 7_us;
  return platform;
}

std::string all_gpus(Network& network, int from, int to) {
  return route_text(network, gpus(from, 0, 8), gpus(to, 0, 8));
}

std::string problem_text(const Platform& platform) {
  const auto [key, problem] = platform.fabric.kind->problem(platform);
  return key + ": " + problem;
}

TEST_CASE("a fat tree of one tier is leaf switches") {
  const Platform tree =
      joined_by("fat_tree", {{"nodes_per_switch", Numbers{2}}, {"taper", Numbers{4}}});
  const Platform leaves =
      joined_by("leaf_switches", {{"nodes_per_leaf", 2.0}, {"oversubscription", 4.0}});
  Network one(tree, 6), other(leaves, 6);
  for (int to = 1; to < 6; ++to) CHECK(all_gpus(one, 0, to) == all_gpus(other, 0, to));
}

TEST_CASE("a message passes the tiers of a fat tree up to the first switch that both ends have") {
  // A node has 4 * 5 = 20 GB/s. A leaf of two: 40 / 1; a switch of tier 2 with four nodes: 80 / (1 * 2) = 40;
  // one of tier 3 with eight: 160 / (1 * 2 * 4) = 20. A leaf without taper cannot fill.
  const Platform platform =
      joined_by("fat_tree", {{"nodes_per_switch", Numbers{2, 4, 8}}, {"taper", Numbers{1, 2, 4}}});
  Network network(platform, 16);
  CHECK(all_gpus(network, 0, 1) == "node0 up 20 | node1 down 20");
  CHECK(all_gpus(network, 0, 3) == "node0 up 20 | node3 down 20");
  CHECK(all_gpus(network, 0, 7) ==
        "node0 up 20; tier2 switch0 up 40 | tier2 switch1 down 40; node7 down 20");
  CHECK(all_gpus(network, 9, 2) ==
        "node9 up 20; tier2 switch2 up 40; tier3 switch1 up 20 | tier3 switch0 down 20; tier2 "
        "switch0 down 40; node2 down 20");
  CHECK(platform.fabric.kind->unevenness(platform.fabric, 4).empty());
  CHECK(platform.fabric.kind->unevenness(platform.fabric, 5) == "its fat tree is oversubscribed");
}

TEST_CASE("ECMP picks an uplink by the ends of a message, and the path down by the same hash") {
  const Platform platform = joined_by(
      "fat_tree", {{"nodes_per_switch", Numbers{4}}, {"uplinks", Numbers{4}}, {"routing", 1.0}}, 1);
  Network network(platform, 8);
  // Four nodes of 5 GB/s on four uplinks: 5 GB/s each. Four messages, one from each node to another leaf, would fill them if
  // they were on four different ones.
  std::set<std::string> up;
  for (int node = 0; node < 4; ++node) {
    const std::string text = all_gpus(network, node, node + 4);
    const std::size_t at = text.find("uplink");
    const std::string uplink = text.substr(at, std::string("uplink0").size());
    const std::string from = std::to_string(node), to = std::to_string(node + 4);
    CHECK(text == "node" + from + " up 5; leaf0 " + uplink +
                      " up 5; leaf0 up 20 | leaf1 down 20; leaf1 " + uplink + " down 5; node" + to +
                      " down 5");
    CHECK(text == all_gpus(network, node, node + 4));
    up.insert(uplink);
  }
  CHECK(up.size() < 4);  // with this seed some meet
}

TEST_CASE("a hash spreads messages evenly, and otherwise with another seed") {
  constexpr int paths = 4, messages = 4000;
  std::vector<int> taken(paths);
  int same = 0;
  const std::vector<int> nic{0};
  for (int i = 0; i < messages; ++i) {
    const NodeNics from{NodeId(i), nic}, to{NodeId(i + 1), nic};
    const int choice = hashed_choice(paths, 0, from, to, 0);
    ++taken[static_cast<std::size_t>(choice)];
    same += hashed_choice(paths, 1, from, to, 0) == choice ? 1 : 0;
  }
  // 1000 each, within five standard deviations of a binomial: 5 * sqrt(4000 * 1/4 * 3/4) = 137
  for (const int count : taken) CHECK(std::abs(count - messages / paths) < 137);
  CHECK(std::abs(same - messages / paths) < 137);
}

TEST_CASE("a message that has several NICs is hashed by each") {
  const Platform platform = joined_by(
      "fat_tree", {{"nodes_per_switch", Numbers{1}}, {"uplinks", Numbers{4}}, {"routing", 1.0}});
  Network network(platform, 2);
  const std::vector<int> nics{0, 1, 2, 3};
  const std::vector<int> members = hashed_choices(4, 0, {NodeId(0), nics}, {NodeId(1), nics}, 0);
  REQUIRE(members.size() == 4);
  CHECK(std::is_sorted(members.begin(), members.end()));
  int fullest = 0;
  for (const int each : members)
    fullest = std::max(fullest, static_cast<int>(std::count(members.begin(), members.end(), each)));
  REQUIRE(fullest > 1);
  // Four uplinks of 5 GB/s; the fullest has `fullest` quarters of the message: 5 GB/s / (fullest / 4).
  const Route route = network.route(gpus(0, 0, 8), gpus(1, 0, 8));
  CHECK(network.rate_alone({route.up, route.down}) / 1_GBps == doctest::Approx(20.0 / fullest));
}

TEST_CASE("a fat tree says what is wrong with its lists") {
  const auto problem = [](std::map<std::string, FabricValue, std::less<>> values) {
    return problem_text(joined_by("fat_tree", std::move(values)));
  };
  CHECK(problem({{"nodes_per_switch", Numbers{2, 4}}, {"taper", Numbers{1, 2}}}) == ": ");
  CHECK(problem({}).starts_with("nodes_per_switch: a fat tree needs nodes_per_switch"));
  CHECK(problem({{"nodes_per_switch", Numbers{4, 6}}}).starts_with("nodes_per_switch: "));
  CHECK(problem({{"nodes_per_switch", Numbers{4, 4}}}).starts_with("nodes_per_switch: "));
  CHECK(problem({{"nodes_per_switch", Numbers{4, 8}}, {"taper", Numbers{2}}}) ==
        "taper: a fat tree of 2 tiers has one number in taper for each, and this is a list of 1");
  CHECK(
      problem({{"nodes_per_switch", Numbers{4}}, {"uplinks", Numbers{2, 2}}}) ==
      "uplinks: a fat tree of 1 tier has one number in uplinks for each, and this is a list of 2");
  CHECK(problem({{"nodes_per_switch", Numbers{4}}, {"routing", 1.0}}).starts_with("routing: "));
}

TEST_CASE(
    "with PXN a message leaves by the receiver's rail, and a rail of its group is never full") {
  // Four nodes in two groups; NIC i on rail i, two GPUs each. A leaf has 2 * 5 = 10 GB/s from below and 10 / 5 = 2 up.
  const Platform platform =
      joined_by("rails", {{"nodes_per_group", 2.0}, {"oversubscription", 5.0}});
  Network network(platform, 4);
  CHECK(route_text(network, gpus(0, 0, 1), gpus(1, 0, 1)) ==
        "node0 nic0 up 5; node0 up 20 | node1 down 20; node1 nic0 down 5");
  // From rail 0 to rail 3: over NVLink to a GPU of NIC 3.
  CHECK(route_text(network, gpus(0, 0, 1), gpus(1, 7, 1)) ==
        "node0 nic3 up 5; node0 up 20 | node1 down 20; node1 nic3 down 5");
  CHECK(network.route(gpus(0, 0, 1), gpus(1, 0, 1)).latency == 20_us);
  CHECK(network.route(gpus(0, 0, 1), gpus(1, 7, 1)).latency == 27_us);
  CHECK(
      route_text(network, gpus(0, 0, 1), gpus(2, 7, 1)) ==
      "node0 nic3 up 5; node0 up 20; group0 rail3 up 2; group0 up 8 | group1 down 8; group1 rail3 "
      "down 2; node2 down 20; node2 nic3 down 5");
  // Rails 0 and 1 of four: 4 GB/s, and all of them together 8.
  CHECK(route_text(network, gpus(0, 0, 4), gpus(2, 0, 4)) ==
        "node0 nic0-1 up 10; node0 up 20; group0 rail0-1 up 4; group0 up 8 | group1 down 8; group1 "
        "rail0-1 down 4; node2 down 20; node2 nic0-1 down 10");
  CHECK(all_gpus(network, 0, 2) == "node0 up 20; group0 up 8 | group1 down 8; node2 down 20");
}

TEST_CASE("without PXN a message to another rail crosses the spine, in its own group too") {
  const Platform platform =
      joined_by("rails", {{"nodes_per_group", 2.0}, {"oversubscription", 5.0}, {"pxn", 0.0}});
  Network network(platform, 4);
  CHECK(route_text(network, gpus(0, 0, 1), gpus(1, 0, 1)) ==
        "node0 nic0 up 5; node0 up 20 | node1 down 20; node1 nic0 down 5");
  CHECK(
      route_text(network, gpus(0, 0, 1), gpus(1, 7, 1)) ==
      "node0 nic0 up 5; node0 up 20; group0 rail0 up 2; group0 up 8 | group0 down 8; group0 rail3 "
      "down 2; node1 down 20; node1 nic3 down 5");
  CHECK(network.route(gpus(0, 0, 1), gpus(1, 7, 1)).latency == 20_us);
}

TEST_CASE("a relay stays on the sender's trays where NVLink joins several to a node") {
  Platform platform = joined_by("rails", {{"nodes_per_group", 2.0}, {"oversubscription", 5.0}});
  NodeType& domain = platform.node_types.front();
  domain.trays = 2;  // of two rails each
  CHECK(num_rails(platform) == 2);
  // NIC 2 is on rail 0 of tray 1, NIC 1 on rail 1 of tray 0: it leaves by rail 1 of tray 1.
  const std::vector<int> from{2}, to{1};
  CHECK(relayed_to_rails(platform, {NodeId(0), from}, {NodeId(1), to}) == std::vector<int>{3});
  const std::vector<int> same_rail{0};
  CHECK(relayed_to_rails(platform, {NodeId(0), from}, {NodeId(1), same_rail}).empty());
}

TEST_CASE("rails without a spine join the nodes of one group by relays alone") {
  const Platform platform = joined_by("rails_only", {{"nodes_per_group", 4.0}});
  Network network(platform, 4);
  CHECK(route_text(network, gpus(0, 0, 1), gpus(3, 7, 1)) ==
        "node0 nic3 up 5; node0 up 20 | node3 down 20; node3 nic3 down 5");
  CHECK(network.route(gpus(0, 0, 1), gpus(3, 7, 1)).latency == 27_us);
  CHECK(why_not_joined(platform, 4).empty());
  CHECK(why_not_joined(platform, 5) ==
        "the job takes 5 nodes, and a fabric of kind rails_only with these keys joins 4");
}

TEST_CASE("a torus goes along x, then y, in the shorter direction") {
  // Four by two nodes: 0 1 2 3 / 4 5 6 7. Cables of 2 GB/s each way.
  const Platform platform =
      joined_by("torus", {{"dimensions", Numbers{4, 2}}, {"link_rate", (2_GBps).value()}});
  Network network(platform, 8);
  CHECK(all_gpus(network, 0, 1) == "node0 up 20; torus node0 +x 2 | node1 down 20");
  CHECK(all_gpus(network, 0, 3) == "node0 up 20; torus node0 -x 2 | node3 down 20");
  CHECK(all_gpus(network, 1, 6) ==
        "node1 up 20; torus node1 +x 2; torus node2 +y 2 | node6 down 20");
  // Two ahead are as far as two back: ahead.
  CHECK(all_gpus(network, 3, 5) ==
        "node3 up 20; torus node3 +x 2; torus node0 +x 2; torus node1 +y 2 | node5 down 20");
  CHECK(why_not_joined(platform, 9).ends_with("joins 8"));
}

TEST_CASE("a torus of three dimensions") {
  const Platform platform =
      joined_by("torus", {{"dimensions", Numbers{2, 2, 3}}, {"link_rate", (2_GBps).value()}});
  Network network(platform, 12);
  // Node 11 is at (1, 1, 2): one back along z around the ring of three.
  CHECK(all_gpus(network, 0, 11) ==
        "node0 up 20; torus node0 +x 2; torus node1 +y 2; torus node3 -z 2 | node11 down 20");
  CHECK(problem_text(platform) == ": ");
  CHECK(problem_text(joined_by("torus", {{"dimensions", Numbers{4}}})).starts_with("dimensions: "));
  CHECK(
      problem_text(joined_by("torus", {{"dimensions", Numbers{4, 4}}})).starts_with("link_rate: "));
}

std::map<std::string, FabricValue, std::less<>> small_dragonfly() {
  return {{"nodes_per_router", 1.0},
          {"routers_per_group", 2.0},
          {"global_links", 1.0},
          {"groups", 3.0},
          {"local_rate", (4_GBps).value()},
          {"global_rate", (2_GBps).value()}};
}

TEST_CASE("a minimal route of a dragonfly is a local hop, a global one and a local one at most") {
  // Three groups of two routers with a node each. Router 0 of a group has its cable to the first of the other groups, router 1 to the second:
  // 0-1 by routers 0 and 2, 0-2 by routers 1 and 4, 1-2 by routers 3 and 5.
  const Platform platform = joined_by("dragonfly", small_dragonfly(), 1);
  Network network(platform, 6);
  CHECK(all_gpus(network, 0, 1) == "node0 up 5; router0->router1 4 | node1 down 5");
  CHECK(all_gpus(network, 0, 2) == "node0 up 5; group0->group1 cable0 2 | node2 down 5");
  CHECK(
      all_gpus(network, 1, 3) ==
      "node1 up 5; router1->router0 4; group0->group1 cable0 2; router2->router3 4 | node3 down 5");
  CHECK(
      all_gpus(network, 0, 5) ==
      "node0 up 5; router0->router1 4; group0->group2 cable0 2; router4->router5 4 | node5 down 5");
  CHECK(why_not_joined(platform, 7).ends_with("joins 6"));
}

TEST_CASE("Valiant's route goes by the one other group of three") {
  auto values = small_dragonfly();
  values["routing"] = 1.0;
  const Platform platform = joined_by("dragonfly", values, 1);
  Network network(platform, 6);
  CHECK(all_gpus(network, 0, 1) == "node0 up 5; router0->router1 4 | node1 down 5");
  CHECK(all_gpus(network, 0, 2) ==
        "node0 up 5; router0->router1 4; group0->group2 cable0 2; router4->router5 4; "
        "group2->group1 cable0 2; router3->router2 4 | node2 down 5");
}

TEST_CASE("a dragonfly says which key is missing, and which number of groups cannot be cabled") {
  CHECK(problem_text(joined_by("dragonfly", small_dragonfly())) == ": ");
  for (const char* key : {"nodes_per_router", "routers_per_group", "global_links", "groups",
                          "local_rate", "global_rate"}) {
    auto values = small_dragonfly();
    values.erase(key);
    CHECK(problem_text(joined_by("dragonfly", values))
              .starts_with(std::string(key) + ": a dragonfly needs " + key));
  }
  auto values = small_dragonfly();
  values["groups"] = 4.0;
  CHECK(
      problem_text(joined_by("dragonfly", values)).starts_with("groups: each group has 2 cables"));
}

/// Two nodes on each of two leaves, joined by two spines: a cable of 2 GB/s to the first, three of 1 GB/s to the second.
std::vector<FabricCable> two_leaves() {
  return {{"node0", "leaf0", 5_GBps, 1},  {"node1", "leaf0", 5_GBps, 1},
          {"node2", "leaf1", 5_GBps, 1},  {"node3", "leaf1", 5_GBps, 1},
          {"leaf0", "spine0", 2_GBps, 1}, {"leaf1", "spine0", 2_GBps, 1},
          {"leaf0", "spine1", 1_GBps, 3}, {"leaf1", "spine1", 1_GBps, 3}};
}

TEST_CASE("listed cables: the fewest hops, by the lowest name") {
  const Platform platform = joined_by("edge_list", {{"links", two_leaves()}}, 1);
  CHECK(problem_text(platform) == ": ");
  Network network(platform, 4);
  CHECK(all_gpus(network, 0, 1) == "node0 up 5; node0->leaf0 5; leaf0->node1 5 | node1 down 5");
  CHECK(all_gpus(network, 3, 0) ==
        "node3 up 5; node3->leaf1 5; leaf1->spine0 2; spine0->leaf0 2; leaf0->node0 5 | node0 down "
        "5");
  CHECK(why_not_joined(platform, 5).ends_with("joins 4"));
}

TEST_CASE("listed cables by ECMP: one of all that lead nearer, each as likely") {
  auto cables = two_leaves();
  Platform platform = joined_by("edge_list", {{"links", cables}, {"routing", 1.0}}, 1);
  std::map<std::string, int> taken;
  constexpr int seeds = 400;
  for (int seed = 0; seed < seeds; ++seed) {
    platform.fabric.values["routing_seed"] = static_cast<double>(seed);
    Network network(platform, 4);
    const std::string text = all_gpus(network, 0, 2), begin = "leaf0->";
    const std::size_t at = text.find(begin) + begin.size();
    ++taken[text.substr(at, text.find(" down") == at ? 0 : text.find(';', at) - at)];
  }
  // Four cables: 100 each, within five standard deviations: 5 * sqrt(400 * 1/4 * 3/4) = 43
  REQUIRE(taken.size() == 4);
  for (const char* cable : {"spine0 2", "spine1 cable0 1", "spine1 cable1 1", "spine1 cable2 1"}) {
    CAPTURE(cable);
    CHECK(std::abs(taken[cable] - seeds / 4) < 43);
  }
}

TEST_CASE("a listed cable may have another rate back, and NICs of a node switches of their own") {
  const std::vector<FabricCable> cables{
      {"node0 nic0", "leaf0", 5_GBps, 1}, {"node0 nic1", "leaf1", 5_GBps, 1},
      {"node1 nic0", "leaf0", 5_GBps, 1}, {"node1 nic1", "leaf1", 5_GBps, 1},
      {"leaf0", "leaf1", 2_GBps, 1},      {"leaf1", "leaf0", 1_GBps, 1}};
  const Platform platform = joined_by("edge_list", {{"links", cables}}, 2);
  CHECK(problem_text(platform) == ": ");
  Network network(platform, 2);
  const auto text = [&](int from, int to) {
    const Route route = network.route(gpus(0, from, 1), gpus(1, to, 1));
    return testing::path_text(network, route.up);
  };
  CHECK(text(0, 7) ==
        "node0 nic0 up 5; node0 up 10; node0 nic0->leaf0 5; leaf0->leaf1 2; leaf1->node1 nic1 5");
  CHECK(text(7, 0) ==
        "node0 nic1 up 5; node0 up 10; node0 nic1->leaf1 5; leaf1->leaf0 1; leaf0->node1 nic0 5");
  // Each half of a message over both NICs takes its own leaf: 5 GB/s / (1/2).
  CHECK(
      testing::path_text(network, network.route(gpus(0, 0, 8), gpus(1, 0, 8)).up) ==
      "node0 up 10; node0 nic0->leaf0, node0 nic1->leaf1 10; leaf0->node1 nic0, leaf1->node1 nic1 "
      "10");
}

TEST_CASE("listed cables say what is wrong with them") {
  const auto problem = [](const std::vector<FabricCable>& cables, int nics = 1) {
    return problem_text(joined_by("edge_list", {{"links", cables}}, nics));
  };
  CHECK(problem({}).starts_with("links: an edge list needs links"));
  auto cables = two_leaves();
  cables.push_back(cables.front());
  CHECK(problem(cables).starts_with("links: there are two entries from node0 to leaf0"));
  cables.back() = {"node4", "leaf9", 5_GBps, 1};
  CHECK(problem(cables) == "links: no cables lead from node4 to node0");
  CHECK(problem({{"node0 nic0", "leaf0", 5_GBps, 1}, {"node1", "leaf0", 5_GBps, 1}}, 2) ==
        "links: NIC 1 of node0 has no cable, and its NIC 0 has");
}

TEST_CASE("rails say what is wrong with their nodes") {
  Platform platform = joined_by("rails", {{"nodes_per_group", 2.0}});
  CHECK(problem_text(platform) == ": ");
  platform.node_types.front().interconnect.kind = Interconnect::Kind::pcie;
  CHECK(problem_text(platform).starts_with("pxn: a message is relayed over NVLink"));
  platform.fabric.values["pxn"] = 0.0;
  CHECK(problem_text(platform) == ": ");
  platform.node_types.push_back(platform.node_types.front());
  platform.node_types.back().nics = 8;
  CHECK(problem_text(platform) == "kind: rails join nodes with equal numbers of NICs");
  CHECK(problem_text(joined_by("rails", {})).starts_with("nodes_per_group: "));
}

}  // namespace
}  // namespace windtunnel
