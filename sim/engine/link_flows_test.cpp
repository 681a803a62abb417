#include "engine/link_flows.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace windtunnel::detail {
namespace {

using Flows = std::vector<std::uint32_t>;

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

}  // namespace
}  // namespace windtunnel::detail
