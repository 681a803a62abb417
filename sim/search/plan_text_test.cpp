#include <doctest/doctest.h>

#include "core/problem.hpp"
#include "search/rank_command.hpp"
#include "search/testing.hpp"

namespace windtunnel {
namespace {

Scenario base() {
  return scenario_from(R"({"model": "gpt-1.7b", "platform": "selene-a100", "nodes": 2,
                           "training": {"global_batch": 64, "micro_batch": 2, "recompute": "full"},
                           "parallel": {"tensor": 8, "pipeline": 2}})");
}

PlanChoice read(const char* text) {
  const Scenario scenario = base();
  return read_plan_text(text, scenario, search_space(scenario));
}

TEST_CASE("what a plan's text leaves out is as in the file, and data is the rest") {
  const PlanChoice choice = read("pipeline=4,tensor=2");
  CHECK(choice.parallel.tensor == 2);
  CHECK(choice.parallel.pipeline == 4);
  CHECK(choice.parallel.data == 2);  // 16 GPUs / (2 * 4)
  CHECK(choice.training.micro_batch == 2);
  CHECK(choice.training.recompute == Recompute::full);
}

TEST_CASE("a plan's text may name every key that is searched") {
  const PlanChoice choice = read(
      "data=1,micro_batch=4,virtual_pipeline=3,zero_stage=0,recompute=selective,"
      "sequence_parallel=true");
  CHECK(choice.parallel.data == 1);
  CHECK(choice.training.micro_batch == 4);
  CHECK(choice.parallel.schedule->takes(2));
  CHECK(choice.training.recompute == Recompute::selective);
  CHECK(choice.parallel.sequence_parallel);
  CHECK(read("schedule=gpipe").parallel.schedule == schedule_named("gpipe"));
}

TEST_CASE("what is no plan is refused with what to write") {
  const auto refused = [](const char* text, const char* with) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(read(text), doctest::Contains(with), InputError);
  };
  refused("tensr=8", "did you mean \"tensor\"?");
  refused("tensor", "has no \"=\"");
  refused("tensor=0", "whole number from 1");
  refused("tensor=2.5", "whole number from 1");
  refused("tensor=99999999999", "whole number from 1");
  refused("zero_stage=4", "from 0 to 3");
  refused("recompute=half", "one of none, selective, full");
  refused("schedule=custom", "one of gpipe, 1f1b");
  refused("sequence_parallel=yes", "true or false");
}

}  // namespace
}  // namespace windtunnel
