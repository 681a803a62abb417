#include "engine/link_flows.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace windtunnel::detail {
namespace {

std::vector<std::uint32_t> flows_on(const LinkFlows& flows, LinkId link) {
  std::vector<std::uint32_t> found;
  flows.for_each(link, [&](std::uint32_t flow) { found.push_back(flow); });
  return found;
}

using Flows = std::vector<std::uint32_t>;

TEST_CASE("flows stand on a link in the order in which they entered, whichever leaves") {
  LinkFlows flows(2);
  const LinkId link{1};
  CHECK(flows_on(flows, link).empty());
  for (const std::uint32_t flow : {5U, 3U, 9U, 4U}) flows.enter(link, flow);
  CHECK(flows_on(flows, link) == Flows{5, 3, 9, 4});
  flows.leave(link, 9);
  CHECK(flows_on(flows, link) == Flows{5, 3, 4});
  flows.leave(link, 5);
  CHECK(flows_on(flows, link) == Flows{3, 4});
  flows.enter(link, 5);
  CHECK(flows_on(flows, link) == Flows{3, 4, 5});
  for (const std::uint32_t flow : {3U, 4U, 5U}) flows.leave(link, flow);
  CHECK(flows_on(flows, link).empty());
  flows.enter(link, 8);
  CHECK(flows_on(flows, link) == Flows{8});
  CHECK(flows_on(flows, LinkId{0}).empty());
}

TEST_CASE("a flow that crosses a link twice leaves it once at a time") {
  LinkFlows flows(1);
  const LinkId link{0};
  flows.enter(link, 1);
  flows.enter(link, 1);
  flows.leave(link, 1);
  CHECK(flows_on(flows, link) == Flows{1});
  flows.leave(link, 1);
  CHECK(flows_on(flows, link).empty());
}

TEST_CASE("the links of a path are those of the network, in order, also of none") {
  Network network;
  const LinkId a = network.add_link(1_GBps, "a");
  const LinkId b = network.add_link(1_GBps, "b");
  const std::vector<std::vector<LinkId>> paths = {{}, {b}, {b, a}, {}, {a}};
  for (const auto& path : paths) network.add_path(path);
  const PathLinks links(network);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto found = links.of(PathId{i});
    CHECK(std::vector<LinkId>(found.begin(), found.end()) == paths[i]);
  }
}

}  // namespace
}  // namespace windtunnel::detail
