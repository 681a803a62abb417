#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/testing.hpp"
#include "simulate/simulate.hpp"
#include "studies/baseline_estimators.hpp"

namespace windtunnel {
namespace {

const Library& library() {
  static const Library library{source_dir()};
  return library;
}

struct Ways {
  int tensor, pipeline, data, micro_batch;
};

Scenario scenario_from(const std::string& json) {
  Problems problems;
  const auto source = std::make_shared<const SourceText>(SourceText{"baseline.json", json});
  return read_scenario(parse_json(source, problems), library().root, library());
}

/// 32 V100 of 32 GB in 4 nodes of 8, 256 samples.
Scenario scenario_of(const Ways& ways, const std::string& model = "gpt-8.3b") {
  const auto text = [](int number) { return std::to_string(number); };
  const std::string json = R"({"model": ")" + model +
                           R"(", "platform": "pipette-v100-edr", "nodes": 4,
          "software": "megatron-lm-2021",
          "training": {"global_batch": 256, "micro_batch": )" +
                           text(ways.micro_batch) + R"(, "precision": "fp16", "recompute": "full"},
          "parallel": {"tensor": )" +
                           text(ways.tensor) + R"(, "pipeline": )" + text(ways.pipeline) +
                           R"(, "data": )" + text(ways.data) + "}}";
  return scenario_from(json);
}

/// All plans of gpt-8.3b that make_plan() accepts on those 32 GPUs.
std::vector<Scenario> all_plans() {
  std::vector<Scenario> plans;
  for (const int tensor : {1, 2, 4, 8})
    for (const int pipeline : {1, 2, 4, 8})
      for (const int micro_batch : {1, 2, 4, 8})
        if (32 % (tensor * pipeline) == 0)
          plans.push_back(scenario_of({tensor, pipeline, 32 / (tensor * pipeline), micro_batch}));
  return plans;
}

std::vector<const Scenario*> ranked(const std::vector<Scenario>& plans, Baseline baseline) {
  std::vector<std::pair<BaselinePreference, const Scenario*>> liked;
  for (const Scenario& plan : plans)
    if (const auto preference = baseline_preference(baseline, plan))
      liked.emplace_back(*preference, &plan);
  std::stable_sort(liked.begin(), liked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const Scenario*> order;
  for (const auto& [preference, plan] : liked) order.push_back(plan);
  return order;
}

bool fits(const Scenario& scenario) {
  SimulateOptions heap;
  heap.make_engine = make_heap_engine;
  return simulate(scenario, heap).report.memory.fits;
}

TEST_CASE(
    "of AMP's ten favourites at least one does not fit, and of those who look at memory all do") {
  const std::vector<Scenario> plans = all_plans();
  const auto none_fits_of_top = [&](Baseline baseline) {
    std::vector<const Scenario*> order = ranked(plans, baseline);
    REQUIRE(!order.empty());
    if (order.size() > 10) order.resize(10);
    return std::count_if(order.begin(), order.end(),
                         [](const Scenario* plan) { return !fits(*plan); });
  };
  CHECK(none_fits_of_top(Baseline::amp) >= 1);
  CHECK(none_fits_of_top(Baseline::pipette) == 0);
  CHECK(none_fits_of_top(Baseline::megatron) == 0);
}

TEST_CASE("Megatron's rule takes the fewest model-parallel ways that fit, tensor before pipeline") {
  const std::vector<Scenario> plans = all_plans();
  const std::vector<const Scenario*> order = ranked(plans, Baseline::megatron);
  REQUIRE(!order.empty());
  const Parallel& first = order.front()->plan.parallel;
  for (const Scenario* plan : order) {
    const Parallel& other = plan->plan.parallel;
    CHECK(first.tensor * first.pipeline <= other.tensor * other.pipeline);
    if (first.tensor * first.pipeline == other.tensor * other.pipeline)
      CHECK(first.tensor >= other.tensor);
  }
}

TEST_CASE("Varuna leaves out tensor ways and AMP nothing") {
  const Scenario wide = scenario_of({8, 2, 2, 1});
  CHECK(!baseline_preference(Baseline::varuna, wide));
  CHECK(baseline_preference(Baseline::amp, wide));
  // 8.3 B parameters and 22 bytes each on one 32 GB card
  CHECK(!baseline_preference(Baseline::varuna, scenario_of({1, 1, 32, 1})));
  CHECK(baseline_preference(Baseline::amp, scenario_of({1, 1, 32, 1})));
}

TEST_CASE("a scenario's links and gradients come from its tables") {
  // Data ways run before pipeline ways: with tensor 8 each rank group is a node, stages 0 and 1 are two nodes each.
  const Scenario scenario = scenario_of({8, 2, 2, 4});
  const BaselineInputs in = baseline_inputs(scenario);
  CHECK(in.microbatches == 32);  // 256 / (2 * 4)
  CHECK(in.message.value() == doctest::Approx(2.0 * 4 * 1024 * 3072));
  REQUIRE(in.stages.size() == 2);
  CHECK(in.stages[0].data_in_node == 1);
  REQUIRE(in.stages[0].ring.size() == 2);
  const BytesPerSecond nics = node_bandwidth(scenario.platform, NodeId{0});
  CHECK(in.stages[0].ring[0] == nics);
  REQUIRE(in.hops.size() == 2);
  CHECK(in.hops[0] == std::vector<BytesPerSecond>{nics});
  // The stage with the head is slower; a backward pass with recomputation takes three forward passes or so.
  CHECK(in.stages[1].forward > in.stages[0].forward);
  CHECK(in.stages[0].backward / in.stages[0].forward > 2);
  // Pipette's count: 16 h^2 in place of 12; both reduce fp16 gradients in two bytes.
  const double counted = baseline_inputs(scenario, GradientCount::released).stages[0].gradients /
                         in.stages[0].gradients;
  CHECK(counted == doctest::Approx(16.0 / 12).epsilon(0.02));
}

TEST_CASE("Pipette is asked for what its loops try, with the rate of one card") {
  // 4 nodes: stages of whole nodes are 1, 2 or 4.
  CHECK(baseline_preference(Baseline::pipette, scenario_of({8, 4, 1, 1})));
  CHECK(!baseline_preference(Baseline::pipette, scenario_of({4, 8, 1, 1})));
  CHECK(!baseline_preference(Baseline::pipette, scenario_of({8, 4, 1, 16})));
  const Scenario four_cards = scenario_from(
      R"({"model": "gpt-8.3b", "platform": "a100-80gb-4hdr", "nodes": 2,
          "training": {"global_batch": 32, "micro_batch": 1}, "parallel": {"tensor": 8, "pipeline": 2}})");
  const BytesPerSecond node = baseline_inputs(four_cards).hops[0][0];
  CHECK(baseline_inputs(four_cards, GradientCount::released, LinkRate::card).hops[0][0] ==
        node / 4.0);
}

TEST_CASE("a plan without stages takes each method's passes, and a ring where it has one") {
  // One stage: 256 / 4 = 64 microbatches of F + B. Varuna adds the gradient ring; AMP as well, but takes the backward pass, which
  // recomputes, for two forward passes.
  const Scenario scenario = scenario_of({8, 1, 4, 1}, "gpt-1.7b");
  SimulateOptions heap;
  heap.make_engine = make_heap_engine;
  const Report report = simulate(scenario, heap).report;
  const Seconds passes = (report.forward_time + report.backward_time) * 64.0;
  CHECK(baseline_estimate(Baseline::megatron, scenario) / passes == doctest::Approx(1));
  CHECK(baseline_estimate(Baseline::varuna, scenario) > passes);
  CHECK(baseline_estimate(Baseline::amp, scenario) < baseline_estimate(Baseline::varuna, scenario));
}

}  // namespace
}  // namespace windtunnel
