#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "evidence/measurement_set.hpp"
#include "evidence/score.hpp"
#include "simulate/tasks.hpp"
#include "validate/memory_score.hpp"
#include "validate/point_prediction.hpp"

namespace windtunnel {

/// Why a point has no time compared.
enum class SkipKind {
  no_time,      ///< there is no measured time to compare with
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
  std::vector<std::string>
      overrides;  ///< "/pointer=value", over every point: a what-if, not the score of the shipped files
  std::size_t num_points = 0;
  bool never_fitted = false;  ///< as the set says
  std::vector<ScoredRow> comparisons;
  std::vector<SkippedPoint> skipped;

  MeasurementKind kind = MeasurementKind::iteration;
  std::vector<MemoryComparison> memory;
  std::vector<ScoredRow> timers;  ///< compare_timers()
  CapacityVerdicts capacity;
  OrderScore orders;  ///< of pairs of its rows, by the errors of other stacks' pairs
  /// Numbers of the points' own files that were fitted on this very set.
  std::set<std::string> fitted_numbers;

  /// Some point that should have been predicted was not.
  bool has_failures() const;
  /// Some figure was compared.
  bool has_scores() const;
};

/// The comparisons of all sets of iterations, in their order.
std::vector<ScoredRow> iterations_of(const std::vector<ValidatedSet>& sets);

/// Their rows with what each is judged by beside another.
std::vector<MeasuredRun> measured_runs(const std::vector<ValidatedSet>& sets);

/// How points are predicted.
struct Prediction {
  /// From a whole scenario and the folder its paths are relative to. Called on any thread.
  std::function<PointPrediction(const JsonValue&, const std::filesystem::path&)> predict;
  std::size_t at_once = 1;  ///< predictions at the same time
  /// Called with the numbers done and to do; may be empty.
  std::function<void(std::size_t, std::size_t)> on_progress = {};
  /// The same for points of collective sets.
  std::function<PointPrediction(const CollectiveRun&, const JsonValue&,
                                const std::filesystem::path&)>
      predict_collective = {};
};

/// Predicts every point of the set. A point that cannot be predicted, or has no time to compare
/// with, is listed in `skipped` and costs nothing else.
ValidatedSet validate(const MeasurementSet& set, const Prediction& prediction);

/// The timers that are predicted, as the groups of rows: "forward-compute" and "backward-compute" of the last rank, summed
/// over the microbatches of an iteration. Megatron synchronises the GPU at their ends.
std::vector<ScoredRow> compare_timers(const MeasurementPoint& point,
                                      const PointPrediction& predicted);
/// Relative errors by timer.
std::map<std::string, std::vector<double>> timer_errors(const std::vector<ScoredRow>& timers);

/// A figure of a validated set that can have a limit: the smaller the better. Names are those of
/// the JSON document. A bias counts without its sign; verdicts on memory are counts.
struct Metric {
  const char* name;
  /// None where the set has nothing of the kind.
  std::optional<double> (*of)(const ValidatedSet&);
};

/// All of them, in the order in which a message lists them.
const std::vector<Metric>& all_metrics();
/// A null pointer when there is none of this name.
const Metric* find_metric(const std::string& name);

/// Mean absolute error; none of none.
std::optional<double> mean_absolute_error(const std::vector<double>& errors);

}  // namespace windtunnel
