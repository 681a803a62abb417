#include "search/lower_bound.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "report/report_words.hpp"
#include "search/random_scenario_fixtures.hpp"
#include "search/testing.hpp"
#include "simulate/built_scenario.hpp"
#include "simulate/simulate.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {
namespace {

Seconds bound_of(const Scenario& scenario) {
  return lower_bound(
      {&scenario.model, &scenario.platform, &scenario.nodes, &scenario.software, &scenario.plan});
}

std::vector<Seconds> simulated_times(const std::vector<Scenario>& scenarios) {
  std::vector<Seconds> times(scenarios.size());
  run_on_threads(scenarios.size(), default_at_once(),
                 [&](std::size_t i) { times[i] = simulate(scenarios[i]).report.iteration_time; },
                 {});
  return times;
}

TEST_CASE("the bound holds where passes run at once, from both ends and in a V") {
  for (const std::string schedule : {"dualpipe", "dualpipe_v"})
    for (const std::string recompute : {"none", "full"})
      for (const int expert : {1, 8, 16})
        for (const int microbatches : {8, 20}) {
          const Scenario scenario = scenario_from(
              R"({"platform": "dgx-h100", "nodes": 8, "software": "megatron-core-2024",
    "model": {"layers": 8, "hidden": 2048, "heads": 16, "sequence": 2048, "vocab": 32000,
      "moe": {"experts": 16, "top_k": 2, "ffn_hidden": 1024, "dense_layers": 1}},
    "training": {"global_batch": )" +
                  std::to_string(16 * microbatches) +
                  R"(, "micro_batch": 1, "attention": "flash", "recompute": ")" + recompute +
                  R"("}, "parallel": {"pipeline": 4, "data": 16, "expert": )" +
                  std::to_string(expert) + R"(, "schedule": ")" + schedule +
                  R"(", "virtual_pipeline": 2}})",
              {});
          SimulateOptions options;
          options.make_engine = make_native_engine;
          const Seconds time = simulate(scenario, options).report.iteration_time;
          const Seconds bound = bound_of(scenario);
          CAPTURE(schedule);
          CAPTURE(expert);
          CHECK(bound <= time);
          CHECK(bound > time * 0.7);
        }
}

TEST_CASE("the bound is never above the simulated time, and near it on average") {
  RandomScenarios random(1);
  constexpr int batches = 4;
  constexpr std::size_t batch = 40;  // scenarios that are in memory while children are forked
  double sum = 0;
  for (int i = 0; i < batches; ++i) {
    const std::vector<Scenario> scenarios = draw_scenarios(random, batch);
    const std::vector<Seconds> times = simulated_times(scenarios);
    for (std::size_t k = 0; k < scenarios.size(); ++k) {
      CAPTURE(scenarios[k].name);
      const Seconds bound = bound_of(scenarios[k]);
      CHECK(bound <= times[k]);
      sum += bound / times[k];
    }
  }
  // 0.920 to 0.952 from seed to seed, 0.939 over twenty with a standard deviation of 0.007: which scenarios are legal decides which
  // are drawn. What is missing is contention, which these small clusters are drawn to have.
  CHECK(sum / (batches * batch) > 0.925);
}

TEST_CASE("the bound holds for messages, rings and gathers that are compressed") {
  const std::string codecs[] = {
      R"({"pipeline_forward": {"codec": "fixed", "ratio": 8}, "pipeline_backward": {"codec": "fixed", "ratio": 8}})",
      R"({"pipeline_forward": {"codec": "zfp", "rate": 8}, "pipeline_backward": {"codec": "zfp", "rate": 8}})",
      R"({"pipeline_backward": {"codec": "powersgd", "rank": 16, "messages": "epilogue"}})",
      R"({"data_gradients": {"codec": "powersgd", "rank": 16}})",
      R"({"data_gradients": {"codec": "int8"}, "zero_gather": {"codec": "int8"}})",
      R"({"data_gradients": {"codec": "fixed", "ratio": 1000}, "tensor_activations": {"codec": "fixed", "ratio": 4}})"};
  for (const std::string& codec : codecs)
    for (const int tensor : {1, 4, 16})
      for (const int pipeline : {1, 2})
        for (const int zero_stage : {0, 1}) {
          const int data = 32 / (tensor * pipeline);
          const Scenario scenario = scenario_from(
              R"({"model": "gpt-3.6b", "platform": "a100-80gb-4hdr", "nodes": 4,
                  "training": {"global_batch": 64, "micro_batch": 1}, "compression": )" +
                  codec + R"(, "parallel": {"tensor": )" + std::to_string(tensor) +
                  R"(, "pipeline": )" + std::to_string(pipeline) + R"(, "data": )" +
                  std::to_string(data) + R"(, "zero_stage": )" + std::to_string(zero_stage) + "}}",
              {});
          SimulateOptions options;
          options.make_engine = make_native_engine;
          CAPTURE(codec);
          CAPTURE(tensor);
          CAPTURE(pipeline);
          CHECK(bound_of(scenario) <= simulate(scenario, options).report.iteration_time);
        }
}

/// Two stages of eight GPUs, a node each; no latency, no overhead, nothing hidden.
Scenario two_stages(const std::string& schedule, int micro_batches) {
  return scenario_from(
      R"({"model": {"layers": 4, "hidden": 1024, "heads": 16, "sequence": 1024, "vocab": 51200},
          "platform": "selene-a100", "nodes": 2, "software": "megatron-lm-2022",
          "training": {"global_batch": )" +
      std::to_string(micro_batches) + R"(, "micro_batch": 1},
          "parallel": {"tensor": 8, "pipeline": 2, "pipeline_send": "eager", "schedule": ")" +
      schedule + "\"}}");
}

TEST_CASE("for a pipeline of one microbatch nothing can be avoided: the bound is the time") {
  // One replica, so no gradients are reduced; messages meet no others; the events' own resolution is all that is taken off.
  const Scenario scenario = two_stages("1f1b", 1);
  SimulateOptions heap;
  heap.make_engine = make_heap_engine;
  const Seconds time = simulate(scenario, heap).report.iteration_time;
  CHECK(bound_of(scenario) <= time);
  CHECK(bound_of(scenario) / time == doctest::Approx(1).epsilon(1e-5));
}

TEST_CASE(
    "zero-bubble H1 is bounded by its input gradients, which leave before the weight gradients") {
  SimulateOptions heap;
  heap.make_engine = make_heap_engine;
  for (const char* schedule : {"1f1b", "gpipe", "zero_bubble_h1"}) {
    CAPTURE(schedule);
    const Scenario scenario = two_stages(schedule, 8);
    const Seconds time = simulate(scenario, heap).report.iteration_time;
    CHECK(bound_of(scenario) <= time);
    CHECK(bound_of(scenario) / time > 0.9);
  }
}

TEST_CASE("where messages wait for both ends the bound counts the exchanges between passes") {
  struct Case {
    std::string parallel;
    double least;  ///< of the simulated time
  };
  const std::string interleaved = R"("schedule": "interleaved_1f1b", "virtual_pipeline": )";
  for (const Case& example : {Case{R"("pipeline": 4)", 0.999},
                              {R"("pipeline": 4, "schedule": "gpipe")", 0.999},
                              {R"("pipeline": 4, "schedule": "zero_bubble_h1")", 0.9},
                              {R"("pipeline": 4, )" + interleaved + "3", 0.99},
                              {R"("pipeline": 2, )" + interleaved + "2", 0.99}}) {
    const Scenario scenario = scenario_from(
        R"({"model": {"layers": 12, "hidden": 4096, "heads": 32, "sequence": 2048, "vocab": 51200},
              "platform": "selene-a100", "software": "megatron-lm-2022",
              "training": {"global_batch": 64, "micro_batch": 1},
              "parallel": {"tensor": 8, "pipeline_send": "blocking_pairs", )" +
        example.parallel + "}}");
    const Seconds time = simulate(scenario).report.iteration_time;
    const Seconds bound = bound_of(scenario);
    CAPTURE(example.parallel);
    CHECK(bound <= time);
    CHECK(bound > time * example.least);
  }
}

TEST_CASE(
    "a last pass in pieces may be shorter than one that is simulated operation by operation") {
  // Experts of 16 over domains of 5 trays of 4 GPUs: the second group straddles. Exchanges are then simulated as flows, and passes operation by operation, but the
  // last pass, during which gradients are reduced, is simulated in a number of pieces, in which an exchange takes less.
  const Scenario scenario = scenario_from(
      R"({"model": {"family": "llama", "layers": 4, "hidden": 2048, "heads": 16, "sequence": 4096, "vocab": 32000,
                    "ffn_hidden": 4096, "tied_embeddings": false, "moe": {"experts": 16, "top_k": 8, "ffn_hidden": 1024}},
          "platform": "gb200-nvl72", "nodes": 8, "software": "megatron-core-2026@26.08",
          "training": {"global_batch": 64, "micro_batch": 2, "precision": "bf16", "attention": "flash"},
          "parallel": {"data": 32, "expert": 16, "zero_stage": 1, "overlap_gradient_reduce": true}})",
      {{"/platform/domain_nodes", "5"}, {"/platform/segment", "5"}});
  SimulateOptions options;
  options.make_engine = make_native_engine;
  const Seconds time = simulate(scenario, options).report.iteration_time;
  CHECK(bound_of(scenario) <= time);
  CHECK(bound_of(scenario) > time * 0.8);
}

TEST_CASE("the bound holds for every draw of tokens that are not spread evenly") {
  for (const std::string schedule :
       {"1f1b", "gpipe", "zero_bubble_h1", "zero_bubble_v", "dualpipe"})
    for (const char* bandwidth : {"", "25 GB/s"}) {
      const bool has_two_chunks = schedule == "zero_bubble_v" || schedule == "dualpipe";
      Scenario scenario = scenario_from(
          R"({"model": {"layers": 8, "hidden": 2048, "heads": 16, "sequence": 2048, "vocab": 32000,
                        "tied_embeddings": false, "moe": {"experts": 32, "top_k": 2, "ffn_hidden": 1024,
                                                          "balance": {"zipf": 0.8}}},
              "platform": "dgx-h100", "nodes": 4, "software": "megatron-core-2026@0",
              "training": {"global_batch": 128, "micro_batch": 1, "attention": "flash"},
              "parallel": {"pipeline": 2, "data": 16, "expert": 16, "schedule": ")" +
              schedule + R"(", "virtual_pipeline": )" + (has_two_chunks ? "2" : "1") + "}}",
          std::string(bandwidth).empty()
              ? Overrides{}
              : Overrides{{"/platform/link_overrides", R"([{"from": 0, "to": 1, "bandwidth": ")" +
                                                           std::string(bandwidth) +
                                                           R"(", "source": "assumed: x"}])"}});
      const Seconds bound = bound_of(scenario);
      for (scenario.seed = 0; scenario.seed < 4; ++scenario.seed) {
        SimulateOptions options;
        options.make_engine = make_native_engine;
        CAPTURE(schedule);
        CAPTURE(bandwidth);
        CAPTURE(scenario.seed);
        const Seconds time = simulate(scenario, options).report.iteration_time;
        CHECK(bound <= time);
        // Kernels of a block may hide all of its exchanges, which the bound then leaves out.
        if (schedule != "dualpipe") CHECK(bound > time * 0.5);
      }
    }
}

TEST_CASE("the bound holds for whatever rank tries, on every platform and release") {
  const int checked =
      for_each_drawn_plan(RandomBases(7), 200, 40, [](const Scenario& base, const Plan& plan) {
        CAPTURE(base.name);
        CAPTURE(detail::plan_text(plan.training, plan.parallel));
        const Seconds bound =
            lower_bound({&base.model, &base.platform, &base.nodes, &base.software, &plan});
        const Seconds time = simulate_plan(base, plan).iteration_time;
        const Seconds kernels =
            kernel_bound({&base.model, &base.platform, &base.nodes, &base.software, &plan});
        CHECK(bound.value() <= time.value());
        CHECK(kernels.value() <= time.value());
      });
  CHECK(checked > 2000 / one_in);
}

}  // namespace
}  // namespace windtunnel
