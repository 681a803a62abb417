// The plan that is predicted fastest is one that was measured fast.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "evidence/measurement_set.hpp"
#include "evidence/score.hpp"
#include "search/testing.hpp"
#include "simulate/simulate.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {
namespace {

/// Predicted and measured times of a set, by the model size that was measured.
std::map<std::string, std::vector<ScoredRow>> predicted(const MeasurementSet& set) {
  const Library library = shipped_library();
  std::vector<Seconds> times(set.points.size());
  run_on_threads(times.size(), default_at_once(),
                 [&](std::size_t i) {
                   const Scenario scenario =
                       read_scenario(scenario_of(set, set.points[i]), set.folder, library);
                   times[i] = simulate(scenario).report.iteration_time;
                 },
                 {});
  std::map<std::string, std::vector<ScoredRow>> groups;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const MeasurementPoint& point = set.points[i];
    REQUIRE(point.iteration_time.has_value());
    groups[point.group].push_back(
        {point.id, point.group, *point.iteration_time, times[i], Flops{1}});
  }
  return groups;
}

TEST_CASE(
    "the vTrain plan ranked first is within 3 % of the one measured fastest, but for one size") {
  const MeasurementSet set =
      read_measurement_set(shipped_library().root / "validation/vtrain/a100-multi-node.json");
  const auto groups = predicted(set);
  REQUIRE(groups.size() == 4);
  constexpr double close = 0.03;
  for (const char* size : {"3.6B", "39.1B", "175B"}) {
    CAPTURE(size);
    CHECK(top1_regret(groups.at(size)) <= close);
  }
  // A miss that stands: of 18.4B, tensor 4 x pipeline 2 with microbatch 4 is predicted fastest, 9.2 s. It was measured at 10.95 s,
  // slower than the same plan with microbatch 8 and twice the bubble (10.86 s), which no model here explains; the
  // fastest, 9.93 s, is predicted fifth (docs/accuracy.md).
  CHECK(top1_regret(groups.at("18.4B")) > close);
  CHECK(top1_regret(groups.at("18.4B")) < 0.11);
}

}  // namespace
}  // namespace windtunnel
