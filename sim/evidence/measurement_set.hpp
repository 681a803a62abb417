#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "evidence/measured.hpp"
#include "scenario/scenario.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Kind of runs that a set measured.
enum class MeasurementKind {
  iteration,   ///< training iterations; a point is a scenario
  collective,  ///< single collectives; a point is an operation, a size and a number of GPUs
};

/// One measured run.
struct MeasurementPoint {
  std::string id;
  std::string group;   ///< points that a reader would compare with one another
  JsonValue scenario;  ///< merged over the set's base; empty object for a collective
  JsonValue measured;  ///< as written: times, memory, timers
  std::string
      release;  ///< of the software, from the row's `container` where that names one: "26.04"; empty: not stated
  std::optional<Seconds> iteration_time;
  std::optional<double> tokens_per_s_per_gpu, samples_per_s;  ///< where no time is stated
  MeasuredMemory memory;
  std::map<std::string, Seconds> timers;    ///< Megatron's, of the last rank
  std::optional<CollectiveRun> collective;  ///< of a set of collectives
  bool out_of_memory = false;               ///< the run ended for want of memory
  bool failed = false;                      ///< the run ended, nobody knows why: never scored

  bool has_time() const { return iteration_time || tokens_per_s_per_gpu || samples_per_s; }
};

/// Work of an iteration, which a measured throughput makes a time of.
struct IterationWork {
  double samples = 0, tokens_of_gpu = 0;
};
IterationWork iteration_work(const Scenario& scenario);
/// The time as measured, or of the work at the measured rate; none where neither is stated.
std::optional<Seconds> measured_time(const MeasurementPoint& point, const IterationWork& work);

/// Published measurements in the format windtunnel/measurements-v1, with where they come from.
struct MeasurementSet {
  std::string name;
  MeasurementKind kind = MeasurementKind::iteration;
  std::string citation, licence;
  std::string note;  ///< what a reader must know before believing a score on this set
  bool never_fitted =
      false;       ///< no constant was fitted on it, and none may be: its score is out of sample
  JsonValue base;  ///< scenario fragment that all points share
  std::vector<MeasurementPoint> points;
  std::filesystem::path folder;  ///< what paths in the scenarios are relative to
};

/// Reads one set; InputError with every problem, EnvironmentError when the file cannot be read.
MeasurementSet read_measurement_set(const std::filesystem::path& file);
MeasurementSet read_measurement_set(JsonValue value, const std::filesystem::path& folder);

/// The whole scenario of a point: base, then the point's own part, named after the point.
JsonValue scenario_of(const MeasurementSet& set, const MeasurementPoint& point);

/// Why a point is not predicted at all; empty when it is.
std::string why_not_predicted(const MeasurementPoint& point);

/// Why there is no measured iteration time to compare a prediction with; empty when there is one.
std::string why_not_scored(const MeasurementSet& set, const MeasurementPoint& point);

/// What validation/ holds beside sets: the residuals of predictions (evidence/evidence.hpp).
inline constexpr const char* residuals_file = "residuals.json";

/// The files of the sets that `asked` names: a path of a file, or a name in `folder`, as
/// "vtrain-a100-multi-node", "vtrain/a100-multi-node", "a100-multi-node", or "vtrain" for all in
/// vtrain/. Everything in `folder`, sorted, when nothing is asked. InputError on a name that is not
/// there.
std::vector<std::filesystem::path> find_measurement_sets(const std::vector<std::string>& asked,
                                                         const std::filesystem::path& folder);

}  // namespace windtunnel
