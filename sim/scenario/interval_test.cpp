#include "scenario/interval.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include "core/file_io.hpp"
#include "core/testing.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

ScenarioTraits traits(double gpus) { return {"s", "a100", "p", {{"gpus", gpus}}, {}}; }

/// 8 to 64 GPUs measured; 39 residuals -0.19, -0.18, … 0.19.
EvidenceRegime even_regime() {
  EvidenceRegime regime;
  regime.software = "s";
  regime.device_family = "a100";
  regime.sets = {"set"};
  regime.include(traits(8));
  regime.include(traits(64));
  for (int i = -19; i <= 19; ++i) regime.residuals.push_back(i / 100.0);
  return regime;
}

double low_log(const Interval& interval) { return std::log(interval.low / Seconds{10}); }
double high_log(const Interval& interval) { return std::log(interval.high / Seconds{10}); }

/// Like the residuals of a shared cluster: 2 % of noise, and one run in ten that is up to 50 %
/// slow.
double draw_residual(std::mt19937_64& random) {
  std::normal_distribution<double> noise(0, 0.02);
  std::uniform_real_distribution<double> share(0, 1);
  const double residual = noise(random);
  return share(random) < 0.1 ? residual + 0.4 * share(random) : residual;
}

TEST_CASE("the bounds are the shortest interval that holds 0.9 (n+1) of the residuals") {
  // 0.9 (39 + 1) = 36 of 39 evenly spaced ones; all such intervals are 0.35 long, the first is taken
  const auto [low, high] = conformal_bounds(even_regime().residuals);
  CHECK(low == doctest::Approx(-0.19));
  CHECK(high == doctest::Approx(0.16));
}

TEST_CASE("with fewer than 9 residuals the extremes are widened by half") {
  const auto [low, high] = conformal_bounds({-0.02, 0.01, 0.1});
  CHECK(low == doctest::Approx(-0.03));
  CHECK(high == doctest::Approx(0.15));
}

TEST_CASE("one slow outlier among twenty does not widen the interval") {
  // 0.9 (20 + 1) = 18.9, so 19 of 20: all but the outlier
  std::vector<double> residuals;
  for (int i = 0; i < 19; ++i) residuals.push_back((i - 9) / 100.0);
  residuals.push_back(0.5);
  const auto [low, high] = conformal_bounds(residuals);
  CHECK(low == doctest::Approx(-0.09));
  CHECK(high == doctest::Approx(0.09));
}

TEST_CASE("the prediction itself lies in its interval even when all residuals have one sign") {
  CHECK(conformal_bounds({0.1, 0.2}).first == 0);
  CHECK(conformal_bounds({-0.2, -0.1}).second == 0);
}

TEST_CASE("intervals from synthetic residuals hold 85 to 95 of 100 new runs") {
  std::mt19937_64 random(1);
  int held = 0, total = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> residuals;
    for (int i = 0; i < 54; ++i) residuals.push_back(draw_residual(random));
    std::sort(residuals.begin(), residuals.end());
    const auto [low, high] = conformal_bounds(residuals);
    for (int i = 0; i < 100; ++i, ++total) {
      const double fresh = draw_residual(random);
      held += fresh >= low && fresh <= high;
    }
  }
  const double coverage = static_cast<double>(held) / total;
  CHECK(coverage > 0.85);
  CHECK(coverage < 0.95);
}

TEST_CASE("inside what was measured the interval is that of the residuals") {
  const Interval interval = interval_from({even_regime()}, traits(16), Seconds{10});
  CHECK(interval.basis == IntervalBasis::measured);
  CHECK(low_log(interval) == doctest::Approx(-0.19));
  CHECK(high_log(interval) == doctest::Approx(0.16));
  CHECK(interval.reason == "39 held-out runs of set");
}

TEST_CASE("beyond what was measured it is wider by half and says what is new") {
  const Interval interval = interval_from({even_regime()}, traits(128), Seconds{10});
  CHECK(interval.basis == IntervalBasis::extrapolated);
  CHECK(high_log(interval) == doctest::Approx(0.24));  // 1.5 * 0.16
  CHECK(interval.reason == "gpus 128, measured 8 to 64");
}

TEST_CASE("a stack measured on other GPUs is an extrapolation") {
  ScenarioTraits other = traits(16);
  other.device_family = "v100";
  const Interval interval = interval_from({even_regime()}, other, Seconds{10});
  CHECK(interval.basis == IntervalBasis::extrapolated);
  CHECK(interval.reason == "v100 GPUs, measured a100");
}

TEST_CASE("a stack that nobody measured gets 15 percent either way") {
  ScenarioTraits other = traits(16);
  other.software = "new";
  EvidenceRegime narrow = even_regime();
  narrow.residuals = {-0.01, 0.01};
  const Interval interval = interval_from({narrow}, other, Seconds{10});
  CHECK(interval.basis == IntervalBasis::unprofiled);
  CHECK(interval.low / Seconds{1} == doctest::Approx(8.5));
  CHECK(interval.high / Seconds{1} == doctest::Approx(11.5));
}

TEST_CASE("a stack that nobody measured is no surer than those measured on its GPUs") {
  ScenarioTraits other = traits(16);
  other.software = "new";
  const Interval interval = interval_from({even_regime()}, other, Seconds{10});
  CHECK(low_log(interval) == doctest::Approx(-0.285));  // 1.5 * -0.19
  CHECK(high_log(interval) == doctest::Approx(0.24));   // 1.5 * 0.16
}

TEST_CASE("each of stack, GPU and cluster that nobody measured widens by half and is named") {
  ScenarioTraits other = traits(16);
  const auto high = [&other] {
    return high_log(interval_from({even_regime()}, other, Seconds{10}));
  };
  other.software = "mine";
  CHECK(high() == doctest::Approx(1.5 * 0.16));
  other.device_family = "h100";
  CHECK(high() == doctest::Approx(1.5 * 1.5 * 0.16));
  other.platform = "ours";
  const Interval interval = interval_from({even_regime()}, other, Seconds{10});
  CHECK(high_log(interval) == doctest::Approx(1.5 * 1.5 * 1.5 * 0.16));
  CHECK(interval.reason ==
        "no measured runs of software mine; h100 GPUs, measured a100; platform ours, measured p");
}

TEST_CASE("GPUs and a cluster measured with another stack are no news") {
  ScenarioTraits other = traits(16);
  other.software = "mine";
  EvidenceRegime elsewhere = even_regime();
  elsewhere.software = "t";
  elsewhere.device_family = "v100";
  const Interval interval = interval_from({elsewhere, even_regime()}, other, Seconds{10});
  CHECK(interval.reason == "no measured runs of software mine");
}

TEST_CASE("a library without residuals gives no interval, one with them writes it to the report") {
  const Library shipped{source_dir()};
  const Scenario scenario =
      read_scenario(shipped.root / "scenarios" / "gpt3-175b-512xa100.json", shipped);
  const TemporaryFolder folder;
  const Library library{folder.path()};
  Report report;
  report.iteration_time = Seconds{10};
  add_interval(scenario, library, report);
  CHECK_FALSE(report.iteration_time_interval);
  CHECK(report.assumptions.empty());

  write_file_atomically(library.root / "validation" / "residuals.json",
                        evidence_json({even_regime()}));
  add_interval(scenario, library, report);
  REQUIRE(report.iteration_time_interval);
  CHECK(report.iteration_time_interval->second > Seconds{11.5});
  REQUIRE(report.assumptions.size() == 1);
  CHECK(report.assumptions[0].evidence == Evidence::assumed);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("platform selene-a100, measured p") != std::string::npos);
}

/// What the shipped residuals say of a shipped scenario after some changes.
Report report_with(const std::vector<std::pair<std::string, std::string>>& overrides) {
  const Library shipped{source_dir()};
  const Scenario scenario =
      read_scenario(shipped.root / "scenarios" / "gpt3-175b-512xa100.json", shipped, {overrides});
  Report report;
  report.iteration_time = Seconds{10};
  add_interval(scenario, shipped, report);
  return report;
}

TEST_CASE("a profile of one's own does not hide that its GPUs were never measured") {
  const std::string device = "/platform/node_types/0/device";
  std::vector<std::pair<std::string, std::string>> overrides{
      {device + "/name", "h100-sxm"},
      {device + "/peak/fp16", "989 TFLOPS"},
      {device + "/memory/bandwidth", "3350 GB/s"}};
  const Report with_known_stack = report_with(overrides);
  overrides.insert(overrides.end(),
                   {{"/software/name", "ours"}, {"/software/launch/layer_forward", "9 ms"}});
  const Report report = report_with(overrides);
  REQUIRE(report.warnings.size() == 1);
  CAPTURE(report.warnings[0]);
  CHECK(report.warnings[0].find("no measured runs of software ours") != std::string::npos);
  CHECK(report.warnings[0].find("h100 GPUs, measured a100") != std::string::npos);
  const auto [low, high] = *report.iteration_time_interval;
  CHECK(low < with_known_stack.iteration_time_interval->first);
  CHECK(high > with_known_stack.iteration_time_interval->second);
}

}  // namespace
}  // namespace windtunnel
