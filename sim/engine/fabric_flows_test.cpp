// Flows on drawn fabrics of each kind: the native engine, SimGrid and progressive filling agree.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/exact_sharing_fixtures.hpp"
#include "engine/flow_fixtures.hpp"
#include "engine/testing.hpp"
#include "platform/network_fixtures.hpp"

namespace windtunnel {
namespace {

using testing::exact_ends;
using testing::precision;
using testing::TimedFlow;
using Values = std::map<std::string, FabricValue, std::less<>>;
using Numbers = std::vector<double>;

constexpr int num_nodes = 12, num_nics = 4;

/// A fabric of a kind that joins twelve nodes of four NICs, its messages, and how long they take.
class FabricDrawer {
 public:
  FabricDrawer(const FabricKind& kind, unsigned seed)
      : random_(seed), platform_(testing::platform_with(num_nics)) {
    platform_.fabric.kind = &kind;
    platform_.fabric.values = values_of(kind.name);
    if (kind.problem) REQUIRE(kind.problem(platform_).second == "");
    REQUIRE(why_not_joined(platform_, num_nodes).empty());
    network_ = Network(platform_, num_nodes);
    for (int i = draw(20, 60); i > 0; --i) draw_message();
  }

  const Network& network() const { return network_; }
  const std::vector<TimedFlow>& flows() const { return flows_; }

 private:
  int draw(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }
  double draw_rate() { return (1_GBps * (draw(1000, 9000) / 1e3)).value(); }

  Values values_of(const std::string& kind) {
    const double seed = draw(0, 1000), choice = draw(0, 1);
    if (kind == "leaf_switches")
      return {{"nodes_per_leaf", 1.0 * draw(1, 5)}, {"oversubscription", draw(10, 80) / 10.0}};
    if (kind == "fat_tree")
      return {{"nodes_per_switch", Numbers{2, 4}},
              {"taper", Numbers{draw(10, 40) / 10.0, draw(10, 40) / 10.0}},
              {"uplinks", Numbers{1.0 * draw(1, 4), 1.0 * draw(1, 4)}},
              {"routing", choice},
              {"routing_seed", seed}};
    if (kind == "rails")
      return {{"nodes_per_group", 1.0 * draw(1, 6)},
              {"oversubscription", draw(10, 80) / 10.0},
              {"pxn", choice}};
    if (kind == "rails_only") return {{"nodes_per_group", 1.0 * num_nodes}};
    if (kind == "torus")
      return {{"dimensions", choice != 0 ? Numbers{4, 3} : Numbers{3, 2, 2}},
              {"link_rate", draw_rate()}};
    if (kind == "dragonfly")
      return {{"nodes_per_router", 2.0},
              {"routers_per_group", 2.0},
              {"global_links", 1.0 * draw(1, 3)},
              {"groups", 3.0},
              {"local_rate", draw_rate()},
              {"global_rate", draw_rate()},
              {"routing", choice},
              {"routing_seed", seed}};
    REQUIRE(kind == "edge_list");
    std::vector<FabricCable> cables;
    const auto name = [](const char* of, int number) { return of + std::to_string(number); };
    for (int node = 0; node < num_nodes; ++node)
      cables.push_back({name("node", node), name("leaf", node / 3), 1_GBps * draw(5, 20), 1});
    for (int leaf = 0; leaf < num_nodes / 3; ++leaf)
      for (int spine = 0; spine < 2; ++spine)
        cables.push_back(
            {name("leaf", leaf), name("spine", spine), 1_GBps * draw(1, 9), draw(1, 3)});
    return {{"links", cables}, {"routing", choice}, {"routing_seed", seed}};
  }

  void draw_message() {
    const int from = draw(0, num_nodes - 1), to = (from + draw(1, num_nodes - 1)) % num_nodes;
    const auto end = [&](int node) {
      const int count = 1 << draw(0, 3);
      return testing::gpus(node, count * draw(0, 8 / count - 1), count);
    };
    const Route route = network_.route(end(from), end(to));
    flows_.push_back({1_ms * draw(0, 3000), route.up, route.down, 1_MB * draw(1, 20000)});
  }

  std::mt19937 random_;
  Platform platform_;
  Network network_;
  std::vector<TimedFlow> flows_;
};

TEST_CASE(
    "the native engine, SimGrid and progressive filling agree on drawn fabrics of each kind") {
  constexpr unsigned fabrics_of_a_kind = 30,
                     on_simgrid = 6;  // which takes a process of its own each
  for (const FabricKind& kind : fabric_kinds())
    for (unsigned seed = 1; seed <= fabrics_of_a_kind; ++seed) {
      CAPTURE(kind.name);
      CAPTURE(seed);
      const FabricDrawer drawn(kind, seed);
      const std::vector<double> exact = exact_ends(drawn.network(), drawn.flows());
      const auto engine = make_native_engine(drawn.network());
      CHECK(testing::largest_difference(testing::FlowSimulator(*engine, drawn.flows()).ends(),
                                        exact) <= precision);
      if (seed <= on_simgrid)
        CHECK(testing::largest_difference(
                  testing::ends_of(make_simgrid_engine, drawn.network(), drawn.flows()), exact) <=
              precision);
    }
}

}  // namespace
}  // namespace windtunnel
