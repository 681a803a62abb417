#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "search/search_space.hpp"
#include "search/testing.hpp"

namespace windtunnel {
namespace {

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
  // What the file says holds for schedules that wait as the stack does.
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
  // One tensor way has no sequence to split, one replica nothing to shard.
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

}  // namespace
}  // namespace windtunnel
