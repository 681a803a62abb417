#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/anchoring.hpp"
#include "calibrate/fit_constant.hpp"
#include "evidence/evidence.hpp"
#include "evidence/measurement_set.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// A measured iteration that can be predicted.
struct CalibrationPoint {
  std::string set, id;
  std::string size;  ///< of the model, as "18B": what leave-one-size-out leaves out together
  JsonValue scenario;
  std::filesystem::path folder;  ///< what paths in the scenario are relative to
  Seconds measured{};
  ScenarioTraits traits;
  AnchorPlace place;
  StackKnowledge stack = StackKnowledge::unmeasured;  ///< known: the profile was measured
  bool is_fitted = false;             ///< a number of the point's own files was fitted on its set
  std::vector<NumberWithUnit> given;  ///< of each constant, as the point's own files have it
};

/// The points of the sets, and why the others are left out.
struct CalibrationPoints {
  std::vector<CalibrationPoint> points;
  std::vector<std::pair<std::string, std::string>> skipped;  ///< "set: id", reason
  /// Sets that the points' own files were fitted on, as their sources say: what these files predict
  /// of them was not held out.
  std::set<std::string> fitted_sets;
};

/// The measurement sets of the command line, by names or paths; all of the library's where there are none.
std::vector<MeasurementSet> read_sets(const std::vector<std::string>& asked,
                                      const Library& library);

/// Settings that all points of a calibration are read with.
struct PointReading {
  const Library* library = nullptr;
  Overrides overrides;  ///< --set
  std::vector<FitConstant> constants;
};

/// Reads the scenarios of all measured iterations. A point that this version cannot simulate is
/// skipped; InputError when a scenario is wrong, or has no number where a constant is to be fitted.
CalibrationPoints read_calibration_points(const std::vector<MeasurementSet>& sets,
                                          const PointReading& reading);

/// A model's parameters to two digits: "0.12B", "18B", "180B".
std::string size_name(double parameters);

}  // namespace windtunnel
