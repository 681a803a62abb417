#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_value.hpp"
#include "core/object_reader.hpp"
#include "memory/memory_account.hpp"
#include "scenario/scenario.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// GPU memory that a run was seen to use.
struct MeasuredMemory {
  std::optional<Bytes> nvidia_smi;  ///< of the fullest GPU: `nvidia_smi_gib`
  /// The allocator's maxima by rank: `max_allocated_mib_by_rank`, `max_reserved_mib_by_rank`; and `max_memory_usage_gb`, what rank 0 had
  /// allocated at most, in GiB. NeMo's logs do not name unit and rank: on five H100 systems of mlperf-llama31-405b the figure falls with
  /// the number of replicas by 12 bytes a parameter of the first stage, to 0.01 %, where it is read so.
  std::map<int, Bytes> allocated, reserved;
  std::optional<Bytes> most_reserved;  ///< of the fullest GPU: `max_reserved_gib`
  /// `memory_reading`: what the allocator's maxima are to be compared with, "steady_state" unless
  /// the log is known to print those of the first step ("first_step").
  MemoryReading reading = MemoryReading::steady_state;

  bool empty() const {
    return !nvidia_smi && allocated.empty() && reserved.empty() && !most_reserved;
  }
};

/// Operation of a collective; names as in the sets, "all_reduce", …
enum class CollectiveOperation { all_reduce, all_gather, reduce_scatter, all_to_all };

/// One measured collective.
struct CollectiveRun {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  int gpus = 0;  ///< the first so many of each node
  int nodes = 1;
  Bytes
      payload{};  ///< the whole reduced or gathered tensor; all-to-all: what a GPU sends, its own share included
  Seconds measured{};
  std::string algorithm = "flat";  ///< of collective_algorithms(): another under NCCL_ALGO
};

/// Member `key`, a number above zero and no larger than `most`; none when it is absent.
std::optional<double> read_measured_number(ObjectReader& measured, std::string_view key,
                                           double most, const char* what = "a measurement");
/// Member `key`, a time above zero in seconds; none when it is absent.
std::optional<Seconds> read_measured_time(ObjectReader& measured, std::string_view key);
MeasuredMemory read_measured_memory(ObjectReader& measured);
/// Megatron's timers of the last rank, by name: `megatron_timers_ms`.
std::map<std::string, Seconds> read_measured_timers(ObjectReader& measured);
/// From the point itself; its time is in `measured`.
CollectiveRun read_collective_run(ObjectReader& point);

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
  bool out_of_memory = false;  ///< the run ended for want of memory, or "fits" is false
  bool failed = false;         ///< the run ended, nobody knows why: never scored
  bool fits = false;           ///< it is said to have run, whatever was measured of it

  bool has_time() const { return iteration_time || tokens_per_s_per_gpu || samples_per_s; }
  bool ran() const { return !out_of_memory && !failed && (fits || has_time() || !memory.empty()); }
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

/// File of validation/ with the residuals of predictions (evidence/evidence.hpp).
inline constexpr const char* residuals_file = "residuals.json";

/// The files of the sets that `asked` names: a path of a file, or a name in `folder`, as
/// "vtrain-a100-multi-node", "vtrain/a100-multi-node", "a100-multi-node", or "vtrain" for all in
/// vtrain/. Everything in `folder`, sorted, when nothing is asked. InputError on a name that is not
/// there.
std::vector<std::filesystem::path> find_measurement_sets(const std::vector<std::string>& asked,
                                                         const std::filesystem::path& folder);

}  // namespace windtunnel
