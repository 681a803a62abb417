#include "calibrate/point_predictor.hpp"

#include <utility>

#include "report/number_text.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

/// To nine digits: what differs by rounding of a logarithm is the same value.
std::vector<double> rounded(std::vector<double> values) {
  constexpr int digits = 9;
  for (double& value : values) value = rounded_to(value, digits);
  return values;
}

}  // namespace

PointPredictor::PointPredictor(const std::vector<CalibrationPoint>& points,
                               const std::vector<FitConstant>& constants, Predict predict,
                               OnProgress on_progress)
    : points_(&points),
      constants_(&constants),
      predict_(std::move(predict)),
      on_progress_(std::move(on_progress)) {}

Overrides PointPredictor::overrides_for(const CalibrationPoint& point,
                                        const std::vector<double>& values) const {
  Overrides overrides;
  for (std::size_t j = 0; j < values.size(); ++j)
    overrides.emplace_back((*constants_)[j].pointer, text_of({values[j], point.given[j].unit}));
  return overrides;
}

std::vector<Seconds> PointPredictor::predict(const std::vector<double>& exact_values,
                                             const std::vector<std::size_t>& indices) {
  const std::vector<double> values = rounded(exact_values);
  std::map<std::size_t, Seconds>& known = known_[values];
  std::vector<std::size_t> missing;
  for (const std::size_t index : indices)
    if (!known.contains(index)) missing.push_back(index);
  Tasks<Seconds> tasks;
  tasks.count = missing.size();
  tasks.at_once = default_at_once();
  tasks.work = [&](std::size_t i) {
    const CalibrationPoint& point = (*points_)[missing[i]];
    return predict_(point, overrides_for(point, values));
  };
  if (on_progress_)
    tasks.on_done = [&](std::size_t done) { on_progress_(num_predictions_ + done); };
  const std::vector<TaskOutcome<Seconds>> outcomes = run_tasks(tasks);
  num_predictions_ += missing.size();
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (const auto* failure = std::get_if<ChildFailure>(&outcomes[i]))
      throw_failure(*failure, (*points_)[missing[i]].id);
    known[missing[i]] = std::get<Seconds>(outcomes[i]);
  }
  std::vector<Seconds> times;
  for (const std::size_t index : indices) times.push_back(known.at(index));
  return times;
}

PointPredictor::Predict predict_by_simulation(const Library& library, Overrides overrides) {
  return [library, overrides = std::move(overrides)](const CalibrationPoint& point,
                                                     const Overrides& fitted) {
    ReadOptions options;
    options.overrides = overrides;
    options.overrides.insert(options.overrides.end(), fitted.begin(), fitted.end());
    const Scenario scenario = read_scenario(point.scenario, point.folder, library, options);
    return simulate(scenario).report.iteration_time;
  };
}

}  // namespace windtunnel
