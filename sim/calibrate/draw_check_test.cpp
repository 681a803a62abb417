#include "calibrate/draw_check.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/testing.hpp"

namespace windtunnel {
namespace {

/// What calibrations of `constant` on three drawn rows of a shipped set do to its other rows.
std::vector<Draw> try_draws(const char* set, const char* constant) {
  const Library library{source_dir()};
  CalibrationPlan plan;
  plan.constants = {parse_fit_constant(constant)};
  std::vector<MeasurementSet> sets;
  for (const auto& file : find_measurement_sets({set}, library.root / "validation"))
    sets.push_back(read_measurement_set(file));
  const CalibrationPoints read = read_calibration_points(sets, {&library, {}, plan.constants});
  PointPredictor predictor(read.points, plan.constants,
                           tabulated(predict_by_simulation(library, {}), plan.constants));
  return draw_calibrations(read.points, plan, DrawPlan{200}, predictor);
}

double worst_ratio(const std::vector<Draw>& draws) {
  double worst = 0;
  for (const Draw& one : draws) worst = std::max(worst, one.ratio());
  return worst;
}

TEST_CASE("three drawn rows of a measured stack do not make the others much worse") {
  for (const char* set : {"vtrain-a100-multi-node", "megatron-sc21-table1", "korthikanti-table5",
                          "bigscience-a100-176b", "llm-foundry-fsdp"})
    CHECK(worst_ratio(try_draws(set, "compute_efficiency")) <= 1.3);
}

}  // namespace
}  // namespace windtunnel
