#include "calibrate/point_predictor.hpp"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "core/contracts.hpp"
#include "simulate/forked.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

std::string to_bytes(Seconds time) { return {reinterpret_cast<const char*>(&time), sizeof time}; }

Seconds from_bytes(const std::string& bytes) {
  Seconds time;
  WT_EXPECT(bytes.size() == sizeof time);
  std::memcpy(&time, bytes.data(), sizeof time);
  return time;
}

/// To nine digits: what differs by rounding of a logarithm is the same value.
std::vector<double> rounded(std::vector<double> values) {
  constexpr int digits = 9;
  for (double& value : values) value = std::stod(digits_text(value, digits));
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
  ForkedWork work;
  work.count = missing.size();
  work.at_once = default_at_once();
  work.work = [&](std::size_t i) {
    const CalibrationPoint& point = (*points_)[missing[i]];
    return to_bytes(predict_(point, overrides_for(point, values)));
  };
  if (on_progress_) work.on_done = [&](std::size_t done) { on_progress_(num_predictions_ + done); };
  const std::vector<ChildOutcome> outcomes = run_forked(work);
  num_predictions_ += missing.size();
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (const auto* failure = std::get_if<ChildFailure>(&outcomes[i]))
      throw_failure(*failure, (*points_)[missing[i]].id);
    known[missing[i]] = from_bytes(std::get<std::string>(outcomes[i]));
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
