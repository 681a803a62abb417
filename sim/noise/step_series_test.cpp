#include "noise/step_series.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "core/testing.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

Scenario scenario_with(const std::string& noise, const Overrides& more = {}) {
  Overrides overrides{{"/model", "gpt-1.7b"},
                      {"/nodes", "4"},
                      {"/training/global_batch", "64"},
                      {"/training/micro_batch", "1"},
                      {"/parallel", R"({"tensor": 4, "pipeline": 4, "data": 2})"},
                      {"/noise", noise}};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return read_scenario(source_dir() / "scenarios/gpt3-175b-512xa100.json", Library{source_dir()},
                       {.overrides = overrides});
}

StepSeries series_of(const Scenario& scenario, std::size_t steps, std::size_t at_once = 1) {
  StepOptions options;
  options.steps = steps;
  options.seed = 7;
  options.at_once = at_once;
  return simulate_steps(scenario, noise_block_of(scenario), options);
}

constexpr const char* all_kinds =
    R"({"pass_jitter": 0.02, "spread": {"gpu": 0.01, "node": 0.01},
        "step_jitter": {"all": 0.002, "gpu": 0.005, "node": 0.005, "correlation": 0.5},
        "slow_parts": [{"gpu": 11, "slowdown": 1.1}], "links": {"rate": 0.1, "latency": 0.2},
        "stalls": {"per_gpu_hour": 100, "median": "20 ms", "spread": 1}})";

Seconds simulated(const Scenario& scenario) {
  SimulateOptions options;
  options.make_engine = make_native_engine;
  options.folding = Folding::never;
  return simulate(scenario, options).report.iteration_time;
}

TEST_CASE("noise of zero gives exactly the time without noise") {
  const Scenario scenario = scenario_with(R"({"pass_jitter": 0})");
  const StepSeries series = series_of(scenario, 3);
  CHECK(series.without_noise == simulated(scenario));
  for (const Seconds time : series.times) CHECK(time == series.without_noise);
  // Simulated, not copied: a slow part of factor 1.
  const StepSeries run =
      series_of(scenario_with(R"({"slow_parts": [{"gpu": 0, "slowdown": 1}]})"), 2);
  for (const Seconds time : run.times) CHECK(time == series.without_noise);
}

TEST_CASE(
    "steps are the same for any number of threads, and the first ones for any number of steps") {
  const Scenario scenario = scenario_with(all_kinds);
  const StepSeries one = series_of(scenario, 70), three = series_of(scenario, 70, 3);
  CHECK(one.times == three.times);
  CHECK(json_of(steps_document(one)) == json_of(steps_document(three)));
  const StepSeries fewer = series_of(scenario, 20);
  CHECK(std::equal(fewer.times.begin(), fewer.times.end(), one.times.begin()));
}

TEST_CASE(
    "steps that are alike for all replicas are simulated with one, with the same result as with "
    "all") {
  const Scenario scenario = scenario_with(
      R"({"step_jitter": {"all": 0.01}, "stalls": {"per_gpu_hour": 100, "median": "50 ms"}})");
  StepOptions options;
  options.steps = 60;
  const StepSeries one = simulate_steps(scenario, noise_block_of(scenario), options);
  options.replicas = Replicas::each;
  const StepSeries each = simulate_steps(scenario, noise_block_of(scenario), options);
  CHECK(one.times == each.times);
}

TEST_CASE("one slow GPU slows the job as much as if every GPU that waits for it were slow") {
  // Without a pipeline all wait for the slowest in every step. The GPU of a device file whose kernels take 1.25 times as long computes at 0.8 of
  // its rates, from both of which kernel times are made.
  const Overrides plan{{"/parallel", R"({"tensor": 8, "data": 4})"}};
  const Seconds usual = simulated(scenario_with("{}", plan));
  const Seconds one =
      series_of(scenario_with(R"({"slow_parts": [{"gpu": 11, "slowdown": 1.25}]})", plan), 1)
          .times.front();
  const Seconds node =
      series_of(scenario_with(R"({"slow_parts": [{"node": 1, "slowdown": 1.25}]})", plan), 1)
          .times.front();
  const Seconds all =
      series_of(
          scenario_with(
              R"({"slow_parts": [{"node": 0, "slowdown": 1.25}, {"node": 1, "slowdown": 1.25}, {"node": 2, "slowdown": 1.25}, {"node": 3, "slowdown": 1.25}]})",
              plan),
          1)
          .times.front();
  CHECK(one == node);
  CHECK(one / all == doctest::Approx(1).epsilon(1e-9));
  CHECK(one > usual);
  CHECK(one < usual * 1.25);
}

TEST_CASE("links that change from step to step change what passes gather over them") {
  const Overrides sharded{
      {"/parallel", R"({"tensor": 1, "pipeline": 1, "data": 32, "zero_stage": 3})"},
      {"/software", "pytorch-fsdp-2024"},
      {"/platform/node_types/0/nic_rate", "10 Gbps"}};
  for (const char* noise : {R"({"links": {"rate": 0.5}})", R"({"links": {"latency": 0.5}})"}) {
    const StepSeries series = series_of(scenario_with(noise, sharded), 4);
    CHECK(series.without_noise.value() ==
          doctest::Approx(simulated(scenario_with(noise, sharded)).value()).epsilon(1e-9));
    for (std::size_t i = 1; i < series.times.size(); ++i) CHECK(series.times[i] != series.times[0]);
  }
}

TEST_CASE("a slow node is one whose GPUs have lower rates") {
  // Kernels that wait for launches, or overlap with a collective, wait less or hide more where they are slower: noise says so of whole passes, and a
  // scenario of single operations.
  const Overrides plan{{"/nodes", "2"},
                       {"/training/global_batch", "16"},
                       {"/parallel", R"({"tensor": 8, "data": 2})"},
                       {"/software/launch/kernel", "0 us"},
                       {"/software/launch/collective", "0 us"},
                       {"/software/batch_read", "null"},
                       {"/software/overlap_backward_tensor_collectives", "false"}};
  const Scenario usual = scenario_with(R"({"slow_parts": [{"node": 1, "slowdown": 1.25}]})", plan);
  JsonValue fast = *find_at(usual.resolved, "/platform/node_types/0");
  fast.set("count", JsonValue(std::int64_t{1}));
  JsonValue slow = fast;
  // 312 TFLOP/s and 2039 GB/s divided by 1.25, and 4 us times 1.25.
  set_at(slow, "/device/peak/fp16", JsonValue(std::string("249.6 TFLOPS")));
  set_at(slow, "/device/memory/bandwidth", JsonValue(std::string("1631.2 GB/s")));
  set_at(slow, "/device/kernel_overhead", JsonValue(std::string("5 us")));
  Overrides types = plan;
  types.emplace_back("/platform/node_types",
                     canonical_text(JsonValue(JsonValue::Array{fast, slow})));
  const Seconds by_rates = simulated(scenario_with("{}", types));
  CHECK(series_of(usual, 1).times.front() / by_rates == doctest::Approx(1).epsilon(1e-9));
  CHECK(by_rates > simulated(scenario_with("{}", plan)));
}

TEST_CASE("every number of a shipped noise has a source") {
  for (const std::string& name : Library{source_dir()}.names("noise")) {
    CAPTURE(name);
    const NoiseBlock noise = noise_block_of(scenario_with(name));
    CHECK(noise.name == name);
    CHECK(!noise.is_none());
    CHECK((noise.stalls.per_gpu_hour == 0 || noise.sources.count("stalls/per_gpu_hour") == 1));
    CHECK((noise.step_jitter.all == 0 || noise.sources.count("step_jitter/all") == 1));
  }
}

TEST_CASE("the slowest of more GPUs is slower") {
  const std::string noise = R"({"step_jitter": {"gpu": 0.02}})";
  const auto median_of = [&](const std::string& nodes, const std::string& data) {
    const Scenario scenario = scenario_with(
        noise, {{"/nodes", nodes},
                {"/parallel", R"({"tensor": 8, "pipeline": 1, "data": )" + data + "}"},
                {"/training/global_batch", std::to_string(8 * std::stoi(data))}});
    const StepSeries series = series_of(scenario, 60);
    return statistics_of(series.times).median / series.without_noise;
  };
  const double few = median_of("1", "1"), many = median_of("16", "16");
  CHECK(few > 1);
  CHECK(many > few);
}

TEST_CASE("statistics of ten steps are those one finds by hand") {
  std::vector<Seconds> times;
  for (const double time : {10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.3, 11.0, 13.0})
    times.emplace_back(time);
  const StepStatistics found = statistics_of(times);
  CHECK(found.median == Seconds{10});
  CHECK(found.mean / Seconds{1} == doctest::Approx(10.43));
  CHECK(found.p95 / Seconds{1} == doctest::Approx(12.1));  // place 8.55: 11 + 0.55 · 2
  CHECK(found.above_1_02 == doctest::Approx(0.3));
  CHECK(found.above_1_05 == doctest::Approx(0.2));
  CHECK(found.above_1_2 == doctest::Approx(0.1));
}

TEST_CASE("a page of steps draws all of them, whatever they are") {
  for (const char* noise : {R"({"pass_jitter": 0.01})", "{}"})
    for (const std::size_t steps : {std::size_t{1}, std::size_t{2}, std::size_t{900}}) {
      StepSeries series;
      series.name = "a page";
      series.noise_name = noise;
      series.without_noise = Seconds{1};
      for (std::size_t i = 0; i < steps; ++i)
        series.times.push_back(Seconds{1 + (noise[1] == '}' ? 0.0 : double(i % 7) / 10)});
      const std::string page = page_of(steps_document(series));
      CHECK(page.find("How long each step takes") != std::string::npos);
      CHECK(page.find("How many steps take how long") != std::string::npos);
      CHECK(page.find("\"nan") == std::string::npos);
      CHECK(page.find("\"-nan") == std::string::npos);
    }
}

TEST_CASE("a scenario without noise is refused, and a slow part that is not there") {
  CHECK_THROWS_AS(noise_block_of(read_scenario(source_dir() / "scenarios/gpt3-175b-512xa100.json",
                                               Library{source_dir()})),
                  InputError);
  CHECK_THROWS_AS(scenario_with(R"({"slow_parts": [{"gpu": 32, "slowdown": 1.1}]})"), InputError);
  CHECK_NOTHROW(scenario_with(R"({"slow_parts": [{"gpu": 31, "slowdown": 1.1}]})"));
  // Four GPUs of a node.
  const Overrides fewer{{"/parallel/pipeline", "1"}, {"/parallel/data", "1"}, {"/nodes", "null"}};
  CHECK_NOTHROW(scenario_with(R"({"slow_parts": [{"gpu": 3, "slowdown": 1.1}]})", fewer));
  CHECK_THROWS_WITH_AS(scenario_with(R"({"slow_parts": [{"gpu": 4, "slowdown": 1.1}]})", fewer),
                       doctest::Contains("leaves idle"), InputError);
}

/// 4 nodes of 8 GPUs: 2 replicas of 4 stages of 4 GPUs.
Scenario small_scenario(const std::string& noise) {
  return read_scenario(source_dir() / "scenarios/gpt3-175b-512xa100.json", Library{source_dir()},
                       {.overrides = {{"/model", "gpt-1.7b"},
                                      {"/nodes", "4"},
                                      {"/training/global_batch", "64"},
                                      {"/training/micro_batch", "1"},
                                      {"/parallel", R"({"tensor": 4, "pipeline": 4, "data": 2})"},
                                      {"/noise", noise}}});
}

StepOdds odds_of(const std::string& noise, std::size_t at_once = 1) {
  const Scenario scenario = small_scenario(noise);
  StepOptions options;
  options.steps = 12;
  options.at_once = at_once;
  return step_odds(scenario, noise_block_of(scenario), options);
}

TEST_CASE(
    "the node of a slow GPU is on the path of every step, and its removal gains what it costs") {
  const StepOdds odds = odds_of(R"({"slow_parts": [{"gpu": 11, "slowdown": 2}]})");
  CHECK(odds.nodes.front().what == "node 1");
  CHECK(odds.nodes.front().share_of_steps == doctest::Approx(1));
  REQUIRE(odds.gains.size() == 1);
  CHECK(odds.gains.front().what == "gpu 11, 2 times as slow");
  const Seconds cost = statistics_of(odds.series.times).mean - odds.series.without_noise;
  CHECK(odds.gains.front().mean / cost == doctest::Approx(1));
}

TEST_CASE("what a slow part makes longer is booked to it, not to launches") {
  const StepOdds odds = odds_of(R"({"slow_parts": [{"gpu": 11, "slowdown": 2}]})");
  const auto share = [&](const std::string& what) {
    const auto found = std::ranges::find(odds.work, what, &CriticalOdds::what);
    return found == odds.work.end() ? 0.0 : found->share_of_time;
  };
  // Twice as slow: as much longer as its kernels take, which are on the path.
  CHECK(share("gpu 11, 2 times as slow") ==
        doctest::Approx(share("compute of stage 1")).epsilon(0.05));
  CHECK(share("launches and overhead of stage 1") < 0.01);
}

TEST_CASE("what other noise makes longer is named noise") {
  const StepOdds odds = odds_of(R"({"stalls": {"per_gpu_hour": 1000}})");
  CHECK(std::ranges::any_of(odds.work, [](const CriticalOdds& each) {
    return each.what.starts_with("noise of stage ");
  }));
}

TEST_CASE("shares of time add up to all of it") {
  const StepOdds odds = odds_of(R"({"pass_jitter": 0.02, "stalls": {"per_gpu_hour": 10}})");
  const double sum = std::accumulate(
      odds.work.begin(), odds.work.end(), 0.0,
      [](double so_far, const CriticalOdds& each) { return so_far + each.share_of_time; });
  CHECK(sum == doctest::Approx(1).epsilon(1e-9));
  for (const CriticalOdds& each : odds.work) CHECK(each.share_of_steps <= 1 + 1e-9);
}

TEST_CASE("each kind of noise is taken away once, and threads change nothing") {
  const char* const noise =
      R"({"pass_jitter": 0.02, "spread": {"gpu": 0.01}, "step_jitter": {"all": 0.01},
          "slow_parts": [{"gpu": 3, "slowdown": 1.1}, {"node": 2, "slowdown": 1.2}],
          "links": {"rate": 0.1}, "stalls": {"per_gpu_hour": 10}})";
  const StepOdds odds = odds_of(noise);
  CHECK(odds.gains.size() == 7);
  CHECK(json_of(odds_document(odds)) == json_of(odds_document(odds_of(noise, 3))));
  // The slowest part costs most: node 2 hides GPU 3.
  CHECK(odds.gains.front().what == "node 2, 1.2 times as slow");
}

}  // namespace
}  // namespace windtunnel
