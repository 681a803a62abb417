#include "simulate/memory_inputs.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "scenario/testing.hpp"

namespace windtunnel {
namespace {

/// Two stages of four tensor ranks on two nodes, with so many sequences a microbatch.
std::vector<bool> launch_bound(const std::string& software, int sequences) {
  const Scenario scenario = testing::read_text(
      R"({"model": {"family": "llama", "layers": 16, "hidden": 2048, "heads": 32, "sequence": 4096, "vocab": 131072, "ffn_hidden": 8192,
          "gated_mlp": true, "rotary": true}, "platform": "hf-cluster-h100", "nodes": 2, "software": ")" +
      software + R"(", "training": {"global_batch": 256, "precision": "bf16", "micro_batch": )" +
      std::to_string(sequences) + R"(}, "parallel": {"tensor": 4, "pipeline": 2, "data": 2}})");
  return memory_inputs(scenario, scenario.plan, count_in_flight(scenario.plan)).is_launch_bound;
}

TEST_CASE("stages with little to compute are launched slower than they run") {
  // Ten layers of the first stage have about 100 collectives in a forward and a backward pass, of 0.8 ms each where stages are on two nodes, and
  // other kernels of 46 ms together: 0.12 s. The GPU computes for 0.03 s at one sequence, and in proportion.
  CHECK(launch_bound("nanotron-2024", 1).front());
  CHECK_FALSE(launch_bound("nanotron-2024", 16).front());
  CHECK(launch_bound("torchtitan-2025", 1).empty());  // its steps are not simulated
}

}  // namespace
}  // namespace windtunnel
