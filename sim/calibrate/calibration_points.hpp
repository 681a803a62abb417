#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/anchoring.hpp"
#include "core/json_value.hpp"
#include "evidence/evidence.hpp"
#include "evidence/measurement_set.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// Between which values a constant is looked for.
struct FitBounds {
  double lower = 0, upper = 0;
};

/// A number of the scenario that is to be fitted: any number, or quantity, at a JSON pointer. In
/// texts like "0.32 ms" the number is fitted and the unit stays.
struct FitConstant {
  std::string name;                 ///< as asked for: a short name, or the pointer itself
  std::string pointer;              ///< as --set takes it
  std::optional<FitBounds> bounds;  ///< none: a tenth of the start to ten times
};

/// How far ln(constant) of a stack or cluster that was not measured lies from the shipped value: the
/// standard deviation of the prior. Constants of a stack with a profile are `known`: the profile's
/// measurements hold them.
enum class StackKnowledge { unmeasured, known };
double prior_spread(const FitConstant& constant, StackKnowledge stack);

/// A number and the unit that follows it; " ms" with its blank, or nothing.
struct NumberWithUnit {
  double number = 0;
  std::string unit;
};

/// What --fit says: "emax", "/platform/node_types/0/nic_efficiency", or with bounds "emax=0.6..1".
/// Short names:
///   device    emax, memory_efficiency
///   software  compute_efficiency, tensor_collective_overhead, kernel_launch, flash_forward, flash_backward
///   platform  nic_efficiency, in_node_collective_slowdown (also arf)
/// Pointers into a platform are those of its first node type. InputError on anything else.
FitConstant parse_fit_constant(const std::string& text);
/// All with a short name, each once.
std::vector<FitConstant> named_fit_constants();

/// The number that `scenario` has at the constant's pointer; none where there is none.
std::optional<NumberWithUnit> number_at(JsonValue& scenario, const std::string& pointer);

/// The text that --set takes for the value: "0.832", "0.317 ms".
std::string text_of(const NumberWithUnit& value);

/// A start value within bounds, ready to be fitted: the bounds of the constant, or a tenth to ten
/// times `start`, and the start moved into them.
struct FitRange {
  double start = 0;
  FitBounds bounds;
};
FitRange range_of(const FitConstant& constant, double start);

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
