#include "search/search_space.hpp"

#include <doctest/doctest.h>

#include <string>

#include "core/problem.hpp"
#include "search/testing.hpp"

namespace windtunnel {
namespace {

using Ints = std::vector<int>;  // of recompute: none 0, selective 1, full 2

TEST_CASE("without a block the search tries what the cluster, the model and the software allow") {
  const SearchSpace space = search_space(on_two_nodes("{}"));
  CHECK(space.gpus == 16);
  CHECK(space.of("tensor") == Ints{1, 2, 4, 8});    // divisors of a node's 8 GPUs
  CHECK(space.of("pipeline") == Ints{1, 2, 4, 8});  // divisors of 16 GPUs, at most 12 layers
  CHECK(space.of("data").empty());
  CHECK(space.of("micro_batch") == Ints{1, 2, 4, 8, 16, 32});
  // Megatron-LM of 2021: all or nothing is recomputed, nothing is sharded or split, no experts; 12 layers into chunks of stages.
  CHECK(space.of("recompute") == Ints{0, 2});
  CHECK(space.of("zero_stage") == Ints{0});
  CHECK(space.of("sequence_parallel") == Ints{0});
  CHECK(space.of("virtual_pipeline") == Ints{1, 2, 3, 6});
  CHECK(space.of("context") == Ints{1});
  CHECK(space.of("expert") == Ints{1});
  CHECK(space.of("precision").size() == 1);
}

/// Experts and long sequences on a stack that knows all axes.
Scenario with_experts() {
  return scenario_from(
      R"({"model": {"layers": 12, "hidden": 1024, "heads": 16, "sequence": 8192, "vocab": 51200,
                    "moe": {"experts": 8, "top_k": 2, "ffn_hidden": 1024}},
          "platform": "dgx-h100", "nodes": 2, "software": "megatron-core-2026",
          "training": {"global_batch": 64, "micro_batch": 1, "precision": "bf16", "attention": "flash"},
          "parallel": {"data": 16}})");
}

TEST_CASE("every axis that the stack supports is tried, in what can be combined") {
  const Scenario scenario = with_experts();
  const SearchSpace space = search_space(scenario);
  CHECK(space.of("context") == Ints{1, 2, 4});  // 2,048 tokens of 8,192 are left to each
  CHECK(space.of("expert") == Ints{1, 2, 4, 8});
  CHECK(space.of("expert_tensor") == space.of("tensor"));
  CHECK(space.of("recompute") == Ints{0, 1, 2});
  CHECK(space.of("zero_stage") == Ints{0, 1, 2, 3});
  CHECK(space.of("sequence_parallel") == Ints{0, 1});
  for (const PlanChoice& plan : enumerate_plans(scenario, space)) {
    const Parallel& parallel = plan.parallel;
    const bool is_only_counted = parallel.data == 0 || 12 % parallel.pipeline != 0 ||
                                 plan.training.micro_batch * parallel.data > 64;
    if (is_only_counted) continue;
    CHECK((parallel.virtual_pipeline == 1 || parallel.pipeline > 1));
    CHECK((parallel.schedule->takes(2)) == (parallel.virtual_pipeline > 1));
    CHECK((parallel.expert_tensor == 1 || parallel.expert_tensor == parallel.tensor));
    CHECK((parallel.tensor == 1 || parallel.sequence_parallel));  // experts need it
    CHECK(16 / parallel.pipeline % (parallel.expert * parallel.expert_tensor) == 0);
  }
}

TEST_CASE("the file's own plan is in the space, whatever the stack supports") {
  const Scenario scenario =
      on_two_nodes("{}", R"({"tensor": 2, "data": 8, "sequence_parallel": true, "zero_stage": 1})");
  const SearchSpace space = search_space(scenario);
  CHECK(space.of("zero_stage") == Ints{0, 1});
  CHECK(space.of("sequence_parallel") == Ints{0, 1});
}

TEST_CASE("what was searched and what was held fixed is every key that matters, once") {
  const Scenario scenario = with_experts();
  std::string searched, held;
  for (const TriedKey& each : tried_keys(scenario, search_space(scenario)))
    (each.is_searched() ? searched : held) += each.key->name() + " ";
  CHECK(searched ==
        "tensor pipeline context data micro_batch virtual_pipeline schedule recompute "
        "sequence_parallel expert expert_tensor zero_stage ");
  CHECK(held.starts_with("precision global_batch "));
  CHECK(held.find("optimizer ") != std::string::npos);
}

TEST_CASE("a default that depends on the plan is that of the plan") {
  // Gradients are reduced beside passes where a recipe says so, but not where both ends of a pipeline hold a copy of each.
  const Scenario scenario = scenario_from(
      R"({"model": {"layers": 8, "hidden": 1024, "heads": 16, "sequence": 2048, "vocab": 51200},
          "platform": "dgx-h100", "nodes": 1, "software": "megatron-core-2026@26.02",
          "training": {"global_batch": 64, "micro_batch": 1, "precision": "bf16", "attention": "flash"},
          "parallel": {"data": 8},
          "search": {"tensor": [1], "pipeline": [4], "micro_batch": [1], "virtual_pipeline": [2],
                     "schedule": ["interleaved_1f1b", "dualpipe"]}})");
  const std::vector<PlanChoice> plans = enumerate_plans(scenario, search_space(scenario));
  REQUIRE(plans.size() == 2);
  CHECK(plans[0].parallel.overlap_gradient_reduce);
  CHECK_FALSE(plans[1].parallel.overlap_gradient_reduce);
}

TEST_CASE("where the block lists a key, what it does not list stays as the file has it") {
  const SearchSpace space = search_space(on_two_nodes(
      R"({"tensor": [1, 2]})",
      R"({"data": 16, "zero_stage": 1, "sequence_parallel": true, "virtual_pipeline": 1})"));
  CHECK(space.of("zero_stage") == Ints{1});
  CHECK(space.of("virtual_pipeline") == Ints{1});
  CHECK(space.of("sequence_parallel") == Ints{1});
  CHECK(space.of("recompute") == Ints{2});
}

TEST_CASE("lists of the block take the place of the defaults, each value once and in order") {
  const SearchSpace space = search_space(on_two_nodes(
      R"({"tensor": [8, 2, 8], "micro_batch": [3], "recompute": ["none", "full", "none"]})"));
  CHECK(space.of("tensor") == Ints{8, 2});
  CHECK(space.of("micro_batch") == Ints{3});
  CHECK(space.of("recompute") == Ints{0, 2});
}

TEST_CASE("a space of more than a million combinations is refused with their number") {
  std::string numbers = "1";
  for (int i = 2; i <= 101; ++i) numbers += ", " + std::to_string(i);
  const Scenario scenario = on_two_nodes(R"({"tensor": [)" + numbers + R"(], "pipeline": [)" +
                                         numbers + R"(], "micro_batch": [)" + numbers + "]}");
  // 101^3
  CHECK_THROWS_WITH_AS(search_space(scenario), doctest::Contains("1,030,301 combinations"),
                       InputError);
}

TEST_CASE("a plan smaller than a node is searched on its GPUs alone") {
  const Scenario part = scenario_from(
      R"({"model": "gpt-1.7b", "platform": "selene-a100",
          "training": {"global_batch": 8, "micro_batch": 1}, "parallel": {"data": 4}})");
  const SearchSpace space = search_space(part);
  CHECK(space.gpus == 4);
  CHECK(space.of("tensor") == Ints{1, 2, 4});  // divisors of 8, at most 4
}

}  // namespace
}  // namespace windtunnel
