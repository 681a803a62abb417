#include "search/lower_bound.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/file_io.hpp"
#include "core/problem.hpp"
#include "report/report_words.hpp"
#include "search/plan_enumerator.hpp"
#include "search/testing.hpp"
#include "simulate/built_scenario.hpp"
#include "simulate/forked.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

Seconds bound_of(const Scenario& scenario) {
  return lower_bound(
      {&scenario.model, &scenario.platform, &scenario.nodes, &scenario.software, &scenario.plan});
}

/// Draws scenarios over everything that the bound speaks of: schedules, sharding, overlap, tensor groups across nodes, mixed
/// nodes, uneven links and stages, tapered leaves, placements.
class ScenarioLottery {
 public:
  explicit ScenarioLottery(unsigned seed) : random_(seed) {}

  /// The text of a scenario that may be illegal.
  std::string draw() {
    const int tensor = pick({1, 1, 2, 2, 4, 8, 16});
    const int pipeline = pick({1, 2, 2, 3, 4, 6, 8});
    const int data = pick({1, 2, 2, 3, 4, 8});
    const int micro_batch = pick({1, 2, 4});
    const int microbatches = pick({1, 2, 3, 4, 6, 8, 12, 24});
    const std::string schedule =
        word({"1f1b", "1f1b", "gpipe", "interleaved_1f1b", "zero_bubble_h1", "zero_bubble_v"});
    const bool is_v = schedule == "zero_bubble_v";
    const int chunks = is_v ? 2 : schedule == "interleaved_1f1b" ? pick({1, 2, 2, 3}) : 1;
    const std::string send = is_v ? "eager" : word({"eager", "blocking_pairs"});
    return R"({"model": {"layers": )" + text(pick({12, 24, 48})) + R"(, "hidden": )" +
           text(pick({1024, 4096, 8192})) + R"(, "heads": 16, "sequence": 1024, "vocab": 51200)" +
           R"(, "tied_embeddings": )" + flag() + R"(}, "platform": ")" +
           word({"selene-a100", "a100-80gb-4hdr", "dgx1-v100", "jean-zay-v100", "lassen-v100",
                 "pipette-a100-hdr", "aws-t4-v100-mixed", "aws-16xt4", "dgx2-v100"}) +
           R"(", "software": ")" +
           word({"megatron-lm-2020", "megatron-lm-2021", "megatron-lm-2022",
                 "megatron-deepspeed-2021", "deepspeed-zero3-2021"}) +
           R"(", "training": {"global_batch": )" + text(data * micro_batch * microbatches) +
           R"(, "micro_batch": )" + text(micro_batch) + R"(, "recompute": ")" +
           word({"none", "selective", "full"}) + R"("}, "parallel": {"tensor": )" + text(tensor) +
           R"(, "pipeline": )" + text(pipeline) + R"(, "data": )" + text(data) +
           R"(, "schedule": ")" + schedule + R"(", "virtual_pipeline": )" + text(chunks) +
           R"(, "sequence_parallel": )" + flag() + R"(, "zero_stage": )" +
           text(pipeline == 1 ? pick({0, 1, 2, 3}) : pick({0, 0, 1, 2})) +
           R"(, "overlap_gradient_reduce": )" + flag() + R"(, "gradient_ring": ")" +
           word({"flat", "hierarchical"}) + R"(", "rank_order": ")" +
           word({"tensor-data-pipeline", "tensor-data-pipeline", "tensor-pipeline-data",
                 "pipeline-data-tensor"}) +
           R"(", "pipeline_send": ")" + send + "\"" + placement(tensor * pipeline * data) + "}}";
  }

  /// Sometimes leaf switches with less than full uplinks, sometimes a slow link.
  std::vector<std::pair<std::string, std::string>> overrides() {
    std::vector<std::pair<std::string, std::string>> list;
    if (pick({0, 0, 1}) == 1)
      list = {{"/platform/fabric/nodes_per_leaf", "2"}, {"/platform/fabric/oversubscription", "4"}};
    return list;
  }

 private:
  int pick(const std::vector<int>& of) { return of[random_() % of.size()]; }
  std::string word(const std::vector<std::string>& of) { return of[random_() % of.size()]; }
  std::string flag() { return word({"true", "false"}); }
  static std::string text(int number) { return std::to_string(number); }

  /// Megatron's order, or on nodes of 8 GPUs the nodes backwards.
  std::string placement(int ranks) {
    if (pick({0, 0, 0, 1}) == 0 || ranks % 8 != 0) return "";
    std::string list;
    for (int rank = 0; rank < ranks; ++rank)
      list += (list.empty() ? "\"" : ", \"") + text((ranks - 1 - rank) / 8) + ":" + text(rank % 8) +
              "\"";
    return ", \"placement\": [" + list + "]";
  }

  std::mt19937 random_;
};

/// The next `count` legal scenarios, each under the text it was read from.
std::vector<Scenario> draw_scenarios(ScenarioLottery& lottery, std::size_t count) {
  std::vector<Scenario> scenarios;
  while (scenarios.size() < count) {
    const std::string text = lottery.draw();
    const auto overrides = lottery.overrides();
    try {
      scenarios.push_back(scenario_from(text, overrides));
      scenarios.back().name = text;
    } catch (const InputError&) {
      continue;
    }
  }
  return scenarios;
}

std::vector<Seconds> simulated_times(const std::vector<Scenario>& scenarios) {
  ForkedWork work;
  work.count = scenarios.size();
  work.at_once = default_at_once();
  work.work = [&](std::size_t i) {
    const Seconds time = simulate(scenarios[i]).report.iteration_time;
    return std::string(reinterpret_cast<const char*>(&time), sizeof time);
  };
  std::vector<Seconds> times;
  for (const ChildOutcome& outcome : run_forked(work)) {
    if (const auto* failure = std::get_if<ChildFailure>(&outcome)) FAIL(failure->text);
    Seconds time;
    std::memcpy(&time, std::get<std::string>(outcome).data(), sizeof time);
    times.push_back(time);
  }
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
  ScenarioLottery lottery(1);
  constexpr int batches = 4;
  constexpr std::size_t batch = 40;  // scenarios that are in memory while children are forked
  double sum = 0;
  for (int i = 0; i < batches; ++i) {
    const std::vector<Scenario> scenarios = draw_scenarios(lottery, batch);
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

TEST_CASE("a last pass in pieces may be shorter than one that is played by operations") {
  // Experts of 16 over domains of 5 trays of 4 GPUs: the second group straddles. Exchanges are then played, and passes with them, but the
  // last pass, beside which gradients are reduced, is played as pieces of a number, in which an exchange takes less.
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

/// Draws a model on a shipped platform, with a shipped stack of one of its releases; nodes of an NVLink domain that need not divide them.
class BaseLottery {
 public:
  explicit BaseLottery(unsigned seed) : random_(seed) {
    for (const std::string& name : shipped_library().names("software")) {
      software_.push_back(name);
      for (const std::string& release : releases_of(name))
        software_.push_back(name + "@" + release);
    }
  }

  /// The next legal one, under the text it was read from.
  Scenario draw() {
    for (;;) {
      const std::string platform = word(shipped_library().names("platforms"));
      const std::string text = draw_text(platform);
      try {
        Scenario scenario = scenario_from(text, overrides(platform));
        scenario.name = text;
        return scenario;
      } catch (const InputError&) {
        continue;
      }
    }
  }

  /// One of the plans around `base` that rank tries without a search block; nothing where the draw is not legal.
  std::optional<Plan> draw_plan(const Scenario& base, const SearchSpace& space) {
    const PlanChoice head = pick(enumerate_heads(base, space));
    auto laid_out = lay_out(base, space, pick(enumerate_plans(base, space, head)));
    if (!std::holds_alternative<Plan>(laid_out)) return std::nullopt;
    return std::get<Plan>(std::move(laid_out));
  }

 private:
  static std::vector<std::string> releases_of(const std::string& software) {
    Problems problems;
    const JsonValue profile = parse_json(
        read_source(shipped_library().root / "platforms/software" / (software + ".json")),
        problems);
    std::vector<std::string> releases;
    if (const JsonValue* list = profile.find("releases"))
      for (const JsonValue& each : list->array()) releases.push_back(each.find("from")->string());
    return releases;
  }

  template <class Value>
  const Value& pick(const std::vector<Value>& of) {
    return of[random_() % of.size()];
  }
  std::string text(const std::vector<int>& of) { return std::to_string(pick(of)); }
  std::string word(const std::vector<std::string>& of) { return pick(of); }

  std::string draw_text(const std::string& platform) {
    const std::string moe =
        pick<int>({0, 1}) == 0
            ? ""
            : R"(, "moe": {"experts": )" + text({8, 16, 64}) + R"(, "top_k": 2, "ffn_hidden": )" +
                  text({512, 2048}) + R"(, "shared_ffn_hidden": )" + text({0, 1024}) +
                  R"(, "balance": )" + word({R"("balanced")", R"({"zipf": 0.5})"}) + "}";
    const int samples = pick<int>({1, 2, 4, 8}), nodes = pick<int>({1, 2, 3, 4, 6, 8, 12});
    return R"({"model": {"layers": )" + text({4, 8, 12, 24}) + R"(, "hidden": )" +
           text({1024, 4096}) + R"(, "heads": 16, "sequence": )" + text({1024, 8192}) +
           R"(, "vocab": 51200, "tied_embeddings": )" + word({"true", "false"}) + moe +
           R"(}, "platform": ")" + platform + R"(", "software": ")" + word(software_) +
           R"(", "nodes": )" + std::to_string(nodes) + R"(, "training": {"global_batch": )" +
           std::to_string(samples * nodes * pick<int>({4, 8})) +
           R"(, "micro_batch": 1, "precision": ")" + word({"fp16", "bf16", "bf16", "fp8"}) +
           R"(", "attention": ")" + word({"flash", "flash", "standard"}) +
           R"("}, "parallel": {"zero_stage": )" + text({0, 1}) + "}}";
  }

  Overrides overrides(const std::string& platform) {
    switch (pick<int>({0, 1, 2, 3})) {
      case 0: {
        if (platform == "aws-t4-v100-mixed") return {};  // nodes of two types share no NVLink
        const std::string nodes = text({2, 3, 5});  // whole domains, over which groups straddle
        return {{"/platform/domain_nodes", nodes}, {"/platform/segment", nodes}};
      }
      case 1:
        return {
            {"/platform/link_overrides",
             R"([{"from": 0, "to": 1, "bandwidth": "5 GB/s", "source": "assumed: a bad cable"}])"}};
      default:
        return {};
    }
  }

  std::mt19937 random_;
  std::vector<std::string> software_;
};

TEST_CASE("the bound holds for whatever rank tries, on every platform and release") {
  BaseLottery lottery(7);
  constexpr int bases = 200, plans_of_base = 40;
  int checked = 0;
  for (int i = 0; i < bases; ++i) {
    const Scenario base = lottery.draw();
    CAPTURE(base.name);
    const SearchSpace space = search_space(base);
    for (int k = 0; k < plans_of_base; ++k) {
      const auto plan = lottery.draw_plan(base, space);
      if (!plan) continue;
      CAPTURE(detail::plan_text(plan->training, plan->parallel));
      const Seconds bound =
          lower_bound({&base.model, &base.platform, &base.nodes, &base.software, &*plan});
      const Seconds time = simulate_plan(base, *plan).iteration_time;
      const Seconds kernels =
          kernel_bound({&base.model, &base.platform, &base.nodes, &base.software, &*plan});
      CHECK(bound.value() <= time.value());
      CHECK(kernels.value() <= time.value());
      ++checked;
    }
  }
  CHECK(checked > 2000);
}

}  // namespace
}  // namespace windtunnel
