#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/progress_line.hpp"
#include "report/summary_text.hpp"
#include "scenario/scenario.hpp"
#include "sweep/sweep.hpp"

namespace windtunnel {

/// The points k with k % count == index: what one of several processes that know nothing of each other does of a sweep.
struct Shard {
  std::size_t index = 0, count = 1;
  std::string
      origin;  ///< where it was read from: "--shard", "SLURM_ARRAY_TASK_ID"; empty: the whole sweep

  bool holds(std::size_t point) const { return point % count == index; }
};

/// "i/n" with i from 0 to n-1, or from 1 to n: n/n is 0/n, so counting from 0 or from 1 gives every point once. Nothing when it is neither.
std::optional<Shard> parse_shard(const std::string& text);

/// The shard that the environment assigns, first found first: a task of a Slurm array (and in it, of an srun step), Open MPI, PMI, an srun
/// step; else the whole. `variable` gives the value of an environment variable, empty when it is not set.
Shard shard_from_environment(const std::function<std::string(const std::string&)>& variable);

enum class SweepMode {
  run,      ///< do what is not done yet, then merge
  dry_run,  ///< list the points
  status,   ///< merge what is there and count
  worker,   ///< do the points that stdin names
};

/// Command line of `sweep`.
struct SweepRequest {
  std::filesystem::path file, directory;
  SweepMode mode = SweepMode::run;
  std::vector<std::pair<std::string, std::string>> overrides;
  std::uint64_t seed = 0;
  std::size_t jobs = 0;     ///< 0: one a core
  PlanChooser choose_plan;  ///< for sweeps with "plan": "best"
  std::string shard;        ///< "i/n"; empty: from the environment
  std::string time_limit;   ///< of one point, as "90 s"; empty: none
  std::string memory_limit;
  bool retry_failed = false;     ///< do failed points again
  std::string version;           ///< of the program, for the manifest
  std::filesystem::path report;  ///< takes the page; empty: none
  ResultFormat format = ResultFormat::text;
  ProgressStyle progress = ProgressStyle::hidden;
  std::function<std::string(const std::string&)> variable;  ///< of the environment
};

/// Carries it out: results to `out`, the rest to `messages`. Returns the exit code: 0, 1 when points failed, 75 when interrupted. Throws
/// InputError and EnvironmentError.
int run_sweep(const SweepRequest& request, const Library& library, std::ostream& out,
              std::ostream& messages);

}  // namespace windtunnel
