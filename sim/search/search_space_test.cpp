#include "search/search_space.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>

#include "core/problem.hpp"
#include "core/testing.hpp"
#include "search/rank.hpp"
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

TEST_CASE("a default that follows from the plan is that of each plan, not of the file's own") {
  // Megatron-Core of 2026 splits sequences wherever it splits tensors; experts have to.
  for (const char* experts : {"", R"(, "moe": {"experts": 8, "top_k": 2, "ffn_hidden": 1024})"}) {
    const Scenario scenario = scenario_from(
        R"({"model": {"layers": 12, "hidden": 1024, "heads": 16, "sequence": 2048, "vocab": 51200)" +
        std::string(experts) + R"(}, "platform": "dgx-h100", "nodes": 2, "software": ")" +
        (*experts == 0 ? "megatron-core-2026" : "megatron-core-2024") + R"(",
            "training": {"global_batch": 64, "micro_batch": 1, "precision": "bf16"},
            "parallel": {"data": 16}, "search": {"tensor": [1, 2]}})");
    const SearchSpace space = search_space(scenario);
    for (const PlanChoice& plan : enumerate_plans(scenario, space))
      CHECK(plan.parallel.sequence_parallel == (plan.parallel.tensor > 1));
  }
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
  // Gradients are reduced during passes where a recipe says so, but not where both ends of a pipeline hold a copy of each.
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

TEST_CASE("only plans that could scatter in their passes keep whole gradients") {
  const Scenario scenario = scenario_from(
      R"({"model": "llama3-8b", "platform": "dgx-h100", "nodes": 2, "software": "torchtitan-2025",
          "training": {"global_batch": 128, "micro_batch": 1, "precision": "bf16", "attention": "flash"},
          "parallel": {"data": 16, "zero_stage": 3, "no_sync": true},
          "search": {"pipeline": [1, 2], "zero_stage": [2, 3]}})");
  int whole = 0;
  for (const PlanChoice& plan : enumerate_plans(scenario, search_space(scenario))) {
    CHECK(plan.parallel.no_sync == plan.parallel.can_scatter_in_passes());
    whole += plan.parallel.no_sync ? 1 : 0;
  }
  CHECK(whole > 0);
}

/// Plans of Llama 3 8B on two nodes that differ in nothing but no_sync: how many have it, and how many have not.
std::pair<int, int> plans_by_no_sync(const std::string& software, const std::string& parallel,
                                     const std::string& search) {
  const Scenario scenario = scenario_from(
      R"({"model": "llama3-8b", "platform": "dgx-h100", "nodes": 2, "software": ")" + software +
      R"(", "training": {"global_batch": 128, "micro_batch": 1, "precision": "bf16"},
          "parallel": {"data": 16, "zero_stage": 3)" +
      parallel + "}" + search + "}");
  std::pair<int, int> counts;
  for (const PlanChoice& plan : enumerate_plans(scenario, search_space(scenario))) {
    const Parallel& degrees = plan.parallel;
    if (degrees.tensor > 1 || degrees.pipeline > 1 || degrees.context > 1 ||
        degrees.zero_stage < 3 || plan.training.micro_batch > 8 ||
        plan.training.recompute != Recompute::none || degrees.sequence_parallel)
      continue;
    ++(degrees.no_sync ? counts.first : counts.second);
  }
  return counts;
}

TEST_CASE(
    "whole gradients are searched where the stack keeps them, nobody decided, and it matters") {
  // Microbatches of 1, 2 and 4 samples of 16 replicas leave several; of 8 samples one, and nothing to keep.
  CHECK(plans_by_no_sync("transformers-2024", "", "") == std::pair{4, 3});
  CHECK(plans_by_no_sync("transformers-2024", R"(, "no_sync": false)", "") == std::pair{0, 4});
  CHECK(plans_by_no_sync("torchtitan-2025", "", "") == std::pair{0, 4});
  const std::string list = R"(, "search": {"micro_batch": [1, 2, 4, 8])";
  CHECK(plans_by_no_sync("transformers-2024", "", list + "}") == std::pair{4, 0});
  CHECK(plans_by_no_sync("transformers-2024", "", list + R"(, "no_sync": [true, false]})") ==
        std::pair{4, 3});
  CHECK(plans_by_no_sync("torchtitan-2025", "", list + R"(, "no_sync": [false, true]})") ==
        std::pair{3, 4});
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

TEST_CASE("a block that lists precisions alone leaves all other axes open") {
  const SearchSpace open = search_space(with_experts());
  Scenario two = with_experts();
  two.search.values["precision"] = {static_cast<int>(Precision::bf16),
                                    static_cast<int>(Precision::fp8)};
  const SearchSpace space = search_space(two);
  CHECK(space.of("precision").size() == 2);
  for (const char* key : {"tensor", "context", "virtual_pipeline", "recompute", "zero_stage"}) {
    CAPTURE(key);
    CHECK(space.of(key) == open.of(key));
  }
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

std::vector<PlanChoice> plans_of(const Scenario& scenario) {
  return enumerate_plans(scenario, search_space(scenario));
}

bool is_legal(const Scenario& scenario, const PlanChoice& choice) {
  return std::holds_alternative<Plan>(lay_out(scenario, search_space(scenario), choice));
}

std::string why_not(const Scenario& scenario, const PlanChoice& choice) {
  const auto laid_out = lay_out(scenario, search_space(scenario), choice);
  const auto* rejections = std::get_if<std::vector<PlanRejection>>(&laid_out);
  return rejections == nullptr ? "" : rejections->front().message;
}

TEST_CASE("every combination is considered once, and data is what is left of the GPUs") {
  const Scenario scenario =
      on_two_nodes(R"({"tensor": [1, 2, 4], "pipeline": [2, 3], "micro_batch": [1, 2]})");
  const std::vector<PlanChoice> plans = plans_of(scenario);
  CHECK(plans.size() == 3 * 2 * 2);
  CHECK(plans[0].parallel.data == 8);  // 16 / (1 * 2)
  CHECK(plans[2].parallel.data == 0);  // 3 does not divide 16
  CHECK(why_not(scenario, plans[2]) == "tensor * pipeline = 1 * 3 = 3 does not divide the 16 GPUs");
}

TEST_CASE("a listed data is taken as it is, and must fill the cluster") {
  const Scenario scenario =
      on_two_nodes(R"({"tensor": [2], "pipeline": [2], "data": [2, 4], "micro_batch": [1]})");
  const std::vector<PlanChoice> plans = plans_of(scenario);
  REQUIRE(plans.size() == 2);
  CHECK(why_not(scenario, plans[0]) ==
        "tensor * pipeline * data = 2 * 2 * 2 is not 16, the number of GPUs");
  CHECK(is_legal(scenario, plans[1]));
}

TEST_CASE("each schedule that is searched sends as its own implementation does") {
  // megatron-lm-2022 waits for its exchanges under 1F1B; nobody's zero bubble does.
  for (const char* schedule : {"1f1b", "zero_bubble_h1"}) {
    const Scenario scenario = on_two_nodes(
        R"({"tensor": [4], "micro_batch": [1], "schedule": ["1f1b", "zero_bubble_h1"]},
            "software": "megatron-lm-2022")",
        R"({"tensor": 4, "pipeline": 2, "schedule": ")" + std::string(schedule) + "\"}");
    for (const PlanChoice& plan : plans_of(scenario)) {
      const bool waits = plan.parallel.schedule->name == "1f1b";
      CHECK((plan.parallel.pipeline_send == PipelineSend::blocking_pairs) == waits);
    }
  }
  // The file's value holds for schedules that wait as the stack does.
  const Scenario eager = on_two_nodes(
      R"({"tensor": [4], "micro_batch": [1], "schedule": ["1f1b", "gpipe", "zero_bubble_h1"]},
          "software": "megatron-lm-2022")",
      R"({"tensor": 4, "pipeline": 2, "pipeline_send": "eager"})");
  for (const PlanChoice& plan : plans_of(eager))
    CHECK(plan.parallel.pipeline_send == PipelineSend::eager);
}

TEST_CASE("numbers that would overflow are rejected, not multiplied") {
  const Scenario scenario = on_two_nodes(
      R"({"tensor": [1048576], "pipeline": [1048576], "data": [1048576], "micro_batch": [1]})");
  CHECK(why_not(scenario, plans_of(scenario).front()).starts_with("tensor * pipeline * data"));
  const Scenario large =
      on_two_nodes(R"({"tensor": [1], "pipeline": [1], "micro_batch": [1048576]})");
  CHECK(why_not(large, plans_of(large).front()) ==
        "data * micro_batch = 16 * 1048576 = 16777216 is more than the global batch of 64");
}

TEST_CASE("several chunks get the interleaved schedule, one chunk the plain one") {
  const std::vector<PlanChoice> plans = plans_of(on_two_nodes(
      R"({"tensor": [4], "pipeline": [4], "micro_batch": [1], "virtual_pipeline": [1, 3]})"));
  REQUIRE(plans.size() == 2);
  CHECK(plans[0].parallel.schedule == schedule_named("1f1b"));
  CHECK(plans[1].parallel.schedule->takes(2));
  CHECK(plans[1].parallel.virtual_pipeline == 3);
}

TEST_CASE("schedules that are listed are tried as they are") {
  const Scenario scenario = on_two_nodes(
      R"({"tensor": [4], "pipeline": [4], "micro_batch": [1], "virtual_pipeline": [1, 3],
          "schedule": ["1f1b", "gpipe"]})");
  const std::vector<PlanChoice> plans = plans_of(scenario);
  CHECK(plans.size() == 4);
  CHECK(std::count_if(plans.begin(), plans.end(),
                      [&](const PlanChoice& plan) { return is_legal(scenario, plan); }) == 2);
}

TEST_CASE("a precision that the GPUs have no rate for is rejected") {
  const Scenario scenario = on_two_nodes(
      R"({"tensor": [4], "pipeline": [4], "micro_batch": [1], "precision": ["bf16", "fp8"]})");
  const std::vector<PlanChoice> plans = plans_of(scenario);
  REQUIRE(plans.size() == 2);
  CHECK(is_legal(scenario, plans[0]));
  CHECK(why_not(scenario, plans[1]) == "device \"a100-sxm-80gb\" has no fp8 rate");
}

TEST_CASE("the same work under two names is there once") {
  // Tensor parallelism of 1 has no sequence to split, one replica nothing to shard.
  const auto count = [](const char* search) { return plans_of(on_two_nodes(search)).size(); };
  CHECK(count(R"({"tensor": [1], "pipeline": [2], "micro_batch": [1],
                  "sequence_parallel": [false, true]})") == 1);
  CHECK(count(R"({"tensor": [2], "pipeline": [2], "micro_batch": [1],
                  "sequence_parallel": [false, true]})") == 2);
  CHECK(count(R"({"tensor": [8], "pipeline": [2], "micro_batch": [1], "zero_stage": [0, 1]})") ==
        1);
}

TEST_CASE("stage_layers of the file hold for its own number of stages") {
  const Scenario scenario =
      on_two_nodes(R"({"tensor": [8], "pipeline": [1, 2], "micro_batch": [1]})",
                   R"({"tensor": 8, "pipeline": 2, "stage_layers": [5, 7]})");
  const std::vector<PlanChoice> plans = plans_of(scenario);
  REQUIRE(plans.size() == 2);
  CHECK(plans[0].parallel.stage_layers.empty());
  CHECK(plans[1].parallel.stage_layers == std::vector<int>{5, 7});
  for (const PlanChoice& plan : plans) CHECK(is_legal(scenario, plan));
}

/// Three nodes of V100, then one of T4, whose stage is slower than the others.
Scenario on_mixed_gpus(const std::string& stage_layers) {
  return scenario_from(
      R"({"model": {"layers": 24, "hidden": 1024, "heads": 16, "sequence": 1024, "vocab": 51200},
          "platform": "aws-t4-v100-mixed", "nodes": 4, "software": "megatron-lm-2021",
          "training": {"global_batch": 64, "micro_batch": 1},
          "parallel": {"tensor": 4, "pipeline": 4)" +
      stage_layers + R"(},
          "search": {"tensor": [4], "pipeline": [2, 4], "micro_batch": [1]}})");
}

/// The layers of the stages of each plan that `rank` tries, by the number of stages.
std::map<int, std::vector<int>> layers_tried(const Scenario& scenario) {
  const SearchSpace space = search_space(scenario);
  PlanMaker maker(scenario.model, space.cluster, scenario.software, scenario.plan.compression);
  std::map<int, std::vector<int>> layers;
  for (PlanChoice choice : enumerate_plans(scenario, space)) {
    const auto laid_out = lay_out_as_tried(scenario, space, choice, maker);
    REQUIRE(std::holds_alternative<const Plan*>(laid_out));
    layers[choice.parallel.pipeline] = std::get<const Plan*>(laid_out)->stage_layers;
  }
  return layers;
}

TEST_CASE("layers are balanced among unlike GPUs unless the file says them") {
  for (const char* open : {"", R"(, "stage_layers": "balanced")"}) {
    const auto layers = layers_tried(on_mixed_gpus(open));
    CAPTURE(open);
    REQUIRE(layers.at(4).size() == 4);
    CHECK(layers.at(4)[3] < layers.at(4)[0]);  // the T4
    CHECK(std::accumulate(layers.at(4).begin(), layers.at(4).end(), 0) == 24);
    CHECK(layers.at(2)[1] < layers.at(2)[0]);
  }
  const auto given = layers_tried(on_mixed_gpus(R"(, "stage_layers": [7, 6, 6, 5])"));
  CHECK(given.at(4) == std::vector<int>{7, 6, 6, 5});
  CHECK(given.at(2) == std::vector<int>{12, 12});
  // Layers that no number of stages divides, and chunks of a plan whose stages the file has balanced.
  const Scenario odd = scenario_from(
      R"({"model": {"layers": 23, "hidden": 1024, "heads": 16, "sequence": 1024, "vocab": 51200},
          "platform": "aws-t4-v100-mixed", "nodes": 4, "software": "megatron-lm-2021",
          "training": {"global_batch": 64, "micro_batch": 1},
          "parallel": {"tensor": 4, "pipeline": 4, "stage_layers": "balanced"},
          "search": {"tensor": [4], "pipeline": [2, 4], "micro_batch": [1]}})");
  CHECK(layers_tried(odd).at(2)[1] < layers_tried(odd).at(2)[0]);
  const Scenario chunks = on_two_nodes(
      R"({"tensor": [4], "pipeline": [4], "micro_batch": [1], "virtual_pipeline": [3]})",
      R"({"tensor": 4, "pipeline": 4, "stage_layers": "balanced"})");
  CHECK(layers_tried(chunks).at(4) == std::vector<int>{3, 3, 3, 3});
  // All alike: as the framework divides them.
  const Scenario even = on_two_nodes(R"({"tensor": [8], "pipeline": [2], "micro_batch": [1]})",
                                     R"({"tensor": 8, "pipeline": 2})");
  CHECK(layers_tried(even).at(2) == std::vector<int>{6, 6});
}

/// 32 trays of four GPUs. The file's own plan has no groups that need NVLink, so that it uses racks of 18 trays as they are.
Scenario read_experts(const Overrides& changes = {}) {
  Problems problems;
  JsonValue value = parse_json(std::make_shared<const SourceText>(SourceText{"search.json", R"({
    "platform": "gb200-nvl72", "nodes": 32, "software": "megatron-core-2026",
    "model": {"family": "llama", "layers": 4, "hidden": 2048, "heads": 16, "sequence": 2048, "vocab": 32000, "gated_mlp": true,
              "rotary": true, "tied_embeddings": false, "moe": {"experts": 64, "top_k": 4, "ffn_hidden": 1024}},
    "training": {"global_batch": 512, "micro_batch": 1, "attention": "flash", "precision": "bf16"},
    "parallel": {"pipeline": 4, "data": 32, "zero_stage": 1},
    "search": {"tensor": [1], "pipeline": [4], "micro_batch": [1], "expert": [8, 16, 32]}})"}),
                               problems);
  problems.throw_if_any();
  return read_scenario(std::move(value), {}, Library{source_dir()}, {changes});
}

TEST_CASE("a search uses the segment of NVLink domains that most of its plans divide") {
  const Scenario own = read_experts();
  REQUIRE(own.nodes.front().gpus == 72);
  const Scenario searched = on_segment_of_search(own);
  CHECK(searched.nodes.size() == 2);
  CHECK(searched.nodes.front().gpus == 64);  // 8, 16 and 32 divide 64; 72 is no multiple of 16
  CHECK(searched.plan.num_ranks() == own.plan.num_ranks());
  const RankResult result = rank_plans(searched, {});
  REQUIRE_FALSE(result.plans.empty());
}

TEST_CASE("a segment that the file gives stays in a search") {
  const Scenario given = read_experts({{"/platform/segment", "18"}});
  CHECK(on_segment_of_search(given).nodes.front().gpus == 72);
}

}  // namespace
}  // namespace windtunnel
