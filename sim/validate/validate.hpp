#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/enum_names.hpp"
#include "evidence/evidence.hpp"
#include "evidence/measurement_set.hpp"
#include "evidence/score.hpp"
#include "scenario/scenario.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {

/// Allocator maxima of one rank of a stage.
struct StageReading {
  Bytes allocated{}, reserved{};
  Bytes first_step_allocated{}, first_step_reserved{};  ///< before the optimizer's moments exist
};

/// Prediction of one point.
struct PointPrediction {
  Seconds time{};                        ///< of the iteration or collective
  IterationWork work = {};               ///< of an iteration
  Flops ideal_work{};                    ///< see score.hpp
  std::optional<JudgedRun> judged = {};  ///< of an iteration
  std::optional<std::pair<Seconds, Seconds>> interval;
  Seconds last_stage_forward{}, last_stage_backward{};  ///< as Megatron's timers
  Bytes memory_max{};                                   ///< nvidia-smi, of the fullest GPU
  MemoryVerdict verdict = MemoryVerdict::fits;
  std::vector<int> stage_of_rank;
  std::vector<StageReading> stages;
  std::vector<FittedNumber> fitted;
};

/// Reads and simulates the scenario with the models and platforms of `library`; its interval is that of `evidence`, of the library where
/// that is null.
PointPrediction predict_by_simulation(const JsonValue& scenario,
                                      const std::filesystem::path& folder, const Library& library,
                                      const ReadOptions& reading = {},
                                      const MeasuredErrors* evidence = nullptr);

/// Predicts one collective on the platform that `scenario` names.
PointPrediction predict_collective(const CollectiveRun& run, const JsonValue& scenario,
                                   const std::filesystem::path& folder, const Library& library,
                                   const ReadOptions& reading = {});

/// Source of a memory figure.
enum class MemoryKind {
  allocated,   ///< torch.cuda.max_memory_allocated
  reserved,    ///< torch.cuda.max_memory_reserved
  nvidia_smi,  ///< what nvidia-smi shows of the fullest GPU
};

/// Measured memory next to predicted memory: means over the ranks of a class, or the fullest GPU.
struct MemoryComparison {
  std::string id;
  MemoryKind kind = MemoryKind::allocated;
  std::string ranks;  ///< "first stage", "middle stages", "next-to-last stage", "last stage"
  Bytes measured{}, predicted{};

  double error() const { return (predicted - measured) / measured; }
};

/// The class of a stage of `stages`: ranks of one class hold nearly the same.
const char* rank_class(int stage, int stages);

/// Every memory figure of the point next to its prediction. Ranks are averaged by class, over those
/// ranks that were read. Ranks the plan does not have are left out.
std::vector<MemoryComparison> compare_memory(const MeasurementPoint& point,
                                             const PointPrediction& predicted);

/// Relative errors of one kind, or of all.
std::vector<double> memory_errors(const std::vector<MemoryComparison>& comparisons,
                                  std::optional<MemoryKind> kind = {});

/// Runs that ended out of memory or ran, against the verdict "fits". Ids, in the order of the file.
struct CapacityVerdicts {
  std::vector<std::string> caught;            ///< ended out of memory, and was refused
  std::vector<std::string> missed;            ///< ended out of memory, and would have been accepted
  std::vector<std::string> refused_that_ran;  ///< ran, and was refused
  std::vector<std::string> ran;               ///< ran, and was accepted

  /// By verdict, in their order: how many ran, and how many ended out of memory.
  struct Ends {
    int ran = 0, out_of_memory = 0;
  };
  std::array<Ends, 4> by_verdict{};

  void add(const MeasurementPoint& point, MemoryVerdict verdict);
  bool empty() const {
    return caught.empty() && missed.empty() && refused_that_ran.empty() && ran.empty();
  }
};

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

/// Their rows with what each is judged by compared with another.
std::vector<MeasuredRun> measured_runs(const std::vector<ValidatedSet>& sets);

/// Prediction of points, and options for it.
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
