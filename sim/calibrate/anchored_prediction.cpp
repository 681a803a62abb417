#include "calibrate/anchored_prediction.hpp"

#include <cmath>
#include <numeric>

#include "core/count_text.hpp"
#include "report/explanation.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {

using detail::time_text;

AnchoredPrediction predict_anchored(const Scenario& plan, const Library& library,
                                    const std::vector<CalibrationPoint>& points,
                                    const Calibration& calibration) {
  SimulateOptions options;
  options.evidence = &library;
  const Report report = simulate(plan, options).report;
  std::vector<std::size_t> rows(points.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  const AnchoredResiduals anchors = anchors_of(points, rows, calibration.in_sample);
  const AnchorPlace place = anchor_place(plan);
  const AnchoredShift shift = anchors.at(place);
  AnchoredPrediction prediction;
  prediction.predicted = report.iteration_time;
  prediction.anchored = report.iteration_time * std::exp(shift.mean);
  prediction.left_open = shift.left_open;
  prediction.num_near = anchors.num_near(place);
  prediction.num_rows = points.size();
  const auto moved = [&](Seconds end) {
    const double distance = std::log(end / report.iteration_time);
    return prediction.anchored * std::exp(distance * std::sqrt(shift.left_open));
  };
  if (const auto& given = report.iteration_time_interval)
    prediction.interval = {moved(given->first), moved(given->second)};
  return prediction;
}

Overrides fitted_overrides(const Calibration& calibration) {
  Overrides overrides;
  for (const FittedConstant& fitted : calibration.constants)
    if (!fitted.is_kept())
      overrides.emplace_back(fitted.constant.pointer, text_of({fitted.value, fitted.given.unit}));
  return overrides;
}

std::string prediction_text(const AnchoredPrediction& prediction, const std::string& file) {
  const auto text = [](Seconds time) { return time_text(time, time); };
  std::string line = "\n" + file + ": " + text(prediction.predicted) +
                     " per iteration with these constants\n  anchored by " +
                     std::to_string(prediction.num_near) + " of " +
                     count_text(prediction.num_rows, "row") + ": " + text(prediction.anchored);
  if (prediction.interval)
    line += "        90 %: " + text(prediction.interval->first) + " to " +
            text(prediction.interval->second);
  return line + "\n";
}

JsonValue prediction_value(const AnchoredPrediction& prediction) {
  JsonValue value(JsonValue::Object{});
  value.set("iteration_time_s", JsonValue(prediction.predicted / Seconds{1}));
  value.set("anchored_s", JsonValue(prediction.anchored / Seconds{1}));
  if (prediction.interval) {
    JsonValue::Array ends;
    ends.emplace_back(prediction.interval->first / Seconds{1});
    ends.emplace_back(prediction.interval->second / Seconds{1});
    value.set("anchored_interval_s", JsonValue(std::move(ends)));
  }
  value.set("rows_near", JsonValue(static_cast<std::int64_t>(prediction.num_near)));
  value.set("variance_left_open", JsonValue(prediction.left_open));
  return value;
}

}  // namespace windtunnel
