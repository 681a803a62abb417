#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenario/scenario.hpp"
#include "scenario/measurement_set.hpp"
#include "scenario/score.hpp"

namespace windtunnel {

/// Why a point has no prediction.
enum class SkipKind {
  no_time,      ///< there is no measured iteration time to compare with
  unsupported,  ///< correct, but not simulated by this version
  failed,       ///< it should have been predicted and was not: bad input, or our bug
};

struct SkippedPoint {
  std::string id;
  SkipKind kind = SkipKind::failed;
  std::string why;
};

/// A measurement set with its predictions. Points keep the order of the file.
struct ValidatedSet {
  std::string name, citation, note;
  std::size_t num_points = 0;
  std::vector<Comparison> comparisons;
  std::vector<SkippedPoint> skipped;

  /// Some point that should have been predicted was not.
  bool has_failures() const;
};

/// What is predicted of one point.
struct PointPrediction {
  Seconds iteration_time{};
  Flops ideal_work{};  ///< see score.hpp
};

/// How points are predicted.
struct Prediction {
  /// From a whole scenario and the folder its paths are relative to. Called in a forked child.
  std::function<PointPrediction(const JsonValue&, const std::filesystem::path&)> predict;
  std::size_t at_once = 1;  ///< children at the same time
  /// Called with the numbers done and to do; may be empty.
  std::function<void(std::size_t, std::size_t)> on_progress = {};
};

/// Reads and simulates the scenario with the models and platforms of `library`.
PointPrediction predict_by_simulation(const JsonValue& scenario,
                                      const std::filesystem::path& folder, const Library& library);

/// Predicts every point of the set. A point that cannot be predicted is listed in `skipped` and
/// costs nothing else.
ValidatedSet validate(const MeasurementSet& set, const Prediction& prediction);

}  // namespace windtunnel
