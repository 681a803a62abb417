// Trainings on other fabrics than leaf switches.
#include <doctest/doctest.h>

#include "simulate/expert_fixtures.hpp"

namespace windtunnel {
namespace {

Seconds time_on(const Overrides& fabric, MakeEngine engine = make_native_engine) {
  return two_by_two::report_for(two_by_two::scenario_of(0, 4, "", fabric), Detail::pass, engine)
      .iteration_time;
}

TEST_CASE("tokens of experts stay on their rails with PXN, and cross the spine without") {
  const auto rails = [](const char* pxn) {
    return Overrides{{"/platform/fabric/kind", "rails"},
                     {"/platform/fabric/nodes_per_group", "2"},
                     {"/platform/fabric/oversubscription", "8"},
                     {"/platform/fabric/pxn", pxn}};
  };
  const Seconds even = time_on({});
  CHECK(time_on(rails("true")) == even);
  CHECK(time_on(rails("false")) > even);
  CHECK(time_on({{"/platform/fabric/kind", "rails_only"},
                 {"/platform/fabric/nodes_per_group", "2"}}) == even);
}

TEST_CASE("a fabric whose links never fill takes as long as one that has none") {
  // Two nodes of 50 GB/s: cables of 100 GB/s are never full.
  const Seconds even = time_on({});
  const std::vector<Overrides> wide{
      {{"/platform/fabric/kind", "torus"},
       {"/platform/fabric/dimensions", "[2, 1]"},
       {"/platform/fabric/link_rate", "100 GB/s"}},
      {{"/platform/fabric/kind", "edge_list"},
       {"/platform/fabric/links",
        R"([["node0", "leaf", "100 GB/s"], ["node1", "leaf", "100 GB/s"]])"}},
      {{"/platform/fabric/kind", "fat_tree"}, {"/platform/fabric/nodes_per_switch", "[1]"}}};
  for (const Overrides& fabric : wide)
    CHECK(time_on(fabric) / even == doctest::Approx(1).epsilon(1e-9));
}

TEST_CASE("a job on more nodes than its fabric joins is refused at the kind") {
  CHECK_THROWS_WITH(
      time_on({{"/platform/fabric/kind", "rails_only"}, {"/platform/fabric/nodes_per_group", "1"}}),
      doctest::Contains("the job takes 2 nodes, and a fabric of kind rails_only with these keys "
                        "joins 1"));
}

}  // namespace
}  // namespace windtunnel
