#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "core/testing.hpp"
#include "noise/step_series.hpp"

namespace windtunnel {
namespace {

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
