#include <doctest/doctest.h>

#include "questions/collective.hpp"
#include "scenario/testing.hpp"

namespace windtunnel {
namespace {

TEST_CASE("half of the nodes send to the rest what the uplinks of their leaves carry") {
  Platform platform;
  NodeType node;
  node.gpus = node.nics = 2;
  node.nic_rate = 10_GBps;
  platform.node_types = {node};
  // Eight nodes of 20 GB/s: four send 80 GB/s. They are on two leaves, whose uplinks carry 2 * 20 / 4 = 10 GB/s each.
  platform.fabric.values = {{"nodes_per_leaf", 2.0}, {"oversubscription", 4.0}};
  const Bisection half = play_bisection(platform, 8);
  CHECK(half.nics / 1_GBps == doctest::Approx(80));
  CHECK(half.carried / 1_GBps == doctest::Approx(20));
  CHECK(half.taper() == doctest::Approx(4));
  CHECK(half.fullest == "leaf0 up");
  CHECK(half.fullest_bandwidth / 1_GBps == doctest::Approx(10));
  platform.fabric.values.clear();
  CHECK(play_bisection(platform, 8).taper() == doctest::Approx(1));
}

TEST_CASE("the network of a scenario is told in three lines") {
  const Scenario scenario = testing::read_text(
      R"({"version": 1, "model": "gpt-8.3b", "platform": "dgx-h100", "nodes": 8, "software": "megatron-lm-2021",
          "training": {"global_batch": 64, "micro_batch": 1}, "parallel": {"tensor": 8, "data": 8}})",
      {{"/platform/fabric/nodes_per_leaf", "2"}, {"/platform/fabric/oversubscription", "2"}});
  const std::string text = network_text(scenario);
  CHECK(text.starts_with("fabric     leaf_switches: "));
  CHECK(text.find("an oversubscription of 2; leaf0 up (") != std::string::npos);
  CHECK(find_at(network_json(scenario), "/bisection/taper") != nullptr);
}

}  // namespace
}  // namespace windtunnel
