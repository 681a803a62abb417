#pragma once

#include <optional>
#include <string>
#include <utility>

#include "calibrate/calibrate.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {

/// A plan predicted with fitted constants, and by what measured rows near it missed.
struct AnchoredPrediction {
  Seconds predicted{};  ///< with the constants alone
  Seconds anchored{};
  std::optional<std::pair<Seconds, Seconds>> interval;  ///< 90 %, about `anchored`
  double left_open = 1;  ///< share of the variance that the rows near it leave
  std::size_t num_near = 0, num_rows = 0;
};

/// Predicts the scenario with the fitted values of `calibration` that are not kept, and moves it by its anchors. The interval of `run`
/// moves likewise, and the logarithms of its ends over the prediction shrink by the square root of `left_open`.
AnchoredPrediction predict_anchored(const Scenario& plan, const Library& library,
                                    const std::vector<CalibrationPoint>& points,
                                    const Calibration& calibration);

/// --set's words for the fitted values that the scenario takes.
Overrides fitted_overrides(const Calibration& calibration);

///   ours/job.json: 3.435 s per iteration with these constants
///     anchored by 2 of 4 rows: 3.450 s     90 %: 3.012 s to 3.860 s
std::string prediction_text(const AnchoredPrediction& prediction, const std::string& file);
JsonValue prediction_value(const AnchoredPrediction& prediction);

}  // namespace windtunnel
