#include "calibrate/calibration_points.hpp"

#include <algorithm>
#include <cmath>

#include "core/option_error.hpp"
#include "report/number_text.hpp"
#include "scenario/overrides.hpp"
#include "scenario/unsupported.hpp"

namespace windtunnel {
namespace {

NumberWithUnit given_value(const FitConstant& constant, JsonValue& resolved,
                           const std::string& point) {
  if (const auto number = number_at(resolved, constant.pointer)) return *number;
  const std::string nearest = closest_known_pointer(constant.pointer);
  throw option_error("--fit", constant.name,
                     "the scenario of " + point + " has no number at " + constant.pointer,
                     nearest.empty() || nearest == constant.pointer
                         ? "windtunnel show --resolved prints all that there are"
                         : "did you mean " + nearest + "?");
}

CalibrationPoint read_point(const MeasurementSet& set, const MeasurementPoint& measured,
                            const PointReading& reading) {
  CalibrationPoint point;
  point.set = set.name;
  point.id = measured.id;
  point.scenario = scenario_of(set, measured);
  point.folder = set.folder;
  Scenario scenario = read_scenario(point.scenario, point.folder, *reading.library,
                                    {.overrides = reading.overrides});
  point.measured = measured_time(measured, iteration_work(scenario)).value();
  point.traits = traits_of(scenario);
  point.place = anchor_place(scenario);
  if (scenario.software.profiled) point.stack = StackKnowledge::known;
  point.is_fitted = std::ranges::any_of(fitted_numbers(scenario), [&](const FittedNumber& number) {
    return number.is_fitted_on(set.name);
  });
  point.size = size_name(total_parameters(scenario.model));
  for (const FitConstant& constant : reading.constants)
    point.given.push_back(given_value(constant, scenario.resolved, point.id));
  return point;
}

}  // namespace

std::vector<MeasurementSet> read_sets(const std::vector<std::string>& asked,
                                      const Library& library) {
  std::vector<MeasurementSet> sets;
  for (const auto& file : find_measurement_sets(asked, library.root / "validation"))
    sets.push_back(read_measurement_set(file));
  return sets;
}

CalibrationPoints read_calibration_points(const std::vector<MeasurementSet>& sets,
                                          const PointReading& reading) {
  CalibrationPoints read;
  for (const MeasurementSet& set : sets) {
    for (const MeasurementPoint& measured : set.points) {
      std::string why = why_not_scored(set, measured);
      try {
        if (why.empty()) read.points.push_back(read_point(set, measured, reading));
      } catch (const UnsupportedError& error) {
        why = error.what();
      }
      if (!why.empty())
        read.skipped.emplace_back(set.name + ": " + measured.id, why.substr(0, why.find('\n')));
    }
  }
  for (const CalibrationPoint& point : read.points)
    if (point.is_fitted) read.fitted_sets.insert(point.set);
  return read;
}

std::string size_name(double parameters) {
  constexpr double billion = 1e9;
  constexpr int digits = 2;
  const double in_billions = parameters / billion;
  const double unit = std::pow(10.0, std::floor(std::log10(in_billions)) - (digits - 1));
  const double rounded = std::round(in_billions / unit) * unit;
  return fixed_text(rounded, in_billions < 1 ? 2 : rounded < 10 ? 1 : 0) + "B";
}

}  // namespace windtunnel
