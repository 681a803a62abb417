#include "engine/link_flows.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace windtunnel::detail {
namespace {

using Flows = std::vector<std::uint32_t>;
using Paths = std::vector<std::vector<LinkId>>;

TEST_CASE("flows stand on a link in the order in which they entered, whichever leaves") {
  LinkFlows flows(2);
  const LinkId link{1};
  CHECK(flows.on(link).empty());
  for (const std::uint32_t flow : {5U, 3U, 9U, 4U}) flows.enter(link, flow);
  CHECK(flows.on(link) == Flows{5, 3, 9, 4});
  flows.leave(link, 9);
  CHECK(flows.on(link) == Flows{5, 3, 4});
  flows.leave(link, 5);
  CHECK(flows.on(link) == Flows{3, 4});
  flows.enter(link, 5);
  CHECK(flows.on(link) == Flows{3, 4, 5});
  for (const std::uint32_t flow : {3U, 4U, 5U}) flows.leave(link, flow);
  CHECK(flows.on(link).empty());
  flows.enter(link, 8);
  CHECK(flows.on(link) == Flows{8});
  CHECK(flows.on(LinkId{0}).empty());
}

TEST_CASE("a flow that crosses a link twice leaves it once at a time") {
  LinkFlows flows(1);
  const LinkId link{0};
  flows.enter(link, 1);
  flows.enter(link, 1);
  flows.leave(link, 1);
  CHECK(flows.on(link) == Flows{1});
  flows.leave(link, 1);
  CHECK(flows.on(link).empty());
}

TEST_CASE("the links of a path are those of the network, in order, also of none") {
  Network network;
  const LinkId a = network.add_link(1_GBps, "a");
  const LinkId b = network.add_link(1_GBps, "b");
  const std::vector<std::vector<LinkId>> paths = {{}, {b}, {b, a}, {}, {a}};
  for (const auto& path : paths) network.add_path(path);
  CHECK(binding_links(network) == paths);
}

TEST_CASE("a node that carries as much as its network cards limits nothing") {
  // 10 + 10 + 20 GB/s of cards under 40 GB/s of the node.
  Network network;
  const LinkId node = network.add_link(40_GBps, "node");
  const LinkId a = network.add_link(10_GBps, "a"), b = network.add_link(10_GBps, "b"),
               c = network.add_link(20_GBps, "c");
  network.add_path({a, node});
  network.add_path({b, node});
  network.add_path({node, c});
  CHECK(binding_links(network) == Paths{{a}, {b}, {c}});
}

TEST_CASE("a node that carries less than its network cards, or flows without a card, stays") {
  Network network;
  const LinkId node = network.add_link(15_GBps, "node");
  const LinkId a = network.add_link(10_GBps, "a"), b = network.add_link(10_GBps, "b");
  network.add_path({a, node});
  network.add_path({b, node});
  CHECK(binding_links(network) == network.paths());

  Network wide;
  const LinkId whole = wide.add_link(40_GBps, "whole"), card = wide.add_link(10_GBps, "card");
  wide.add_path({card, whole});
  wide.add_path({whole});
  CHECK(binding_links(wide) == wide.paths());
}

TEST_CASE("of two equal links in a row one is left, and every path keeps one") {
  Network network;
  const LinkId a = network.add_link(10_GBps, "a"), b = network.add_link(10_GBps, "b");
  network.add_path({a, b});
  network.add_path({});
  const Paths paths = binding_links(network);
  CHECK(paths[0].size() == 1);
  CHECK(paths[1].empty());
}

TEST_CASE("a card that lies under two wide links is counted once for each of them") {
  // Both paths pass the 10 GB/s card: 10 GB/s in all over the 15 GB/s node.
  Network network;
  const LinkId card = network.add_link(10_GBps, "card"), node = network.add_link(15_GBps, "node");
  const LinkId near = network.add_link(12_GBps, "near"), far = network.add_link(12_GBps, "far");
  network.add_path({card, node, near});
  network.add_path({card, node, far});
  CHECK(binding_links(network) == Paths{{card}, {card}});
}

}  // namespace
}  // namespace windtunnel::detail
