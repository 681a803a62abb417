#include <doctest/doctest.h>

#include "engine/link_flows.hpp"

namespace windtunnel {
namespace {

using Paths = std::vector<std::vector<LinkId>>;

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
}  // namespace windtunnel
