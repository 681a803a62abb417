#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>

#include "simulate/tasks.hpp"
#include "sweep/sweep.hpp"

namespace windtunnel {

/// Inputs of a worker besides the sweep.
struct WorkerTask {
  std::filesystem::path directory;
  ChildLimits limits;
  /// Points that need not be done again; may be empty.
  std::function<bool(std::size_t)> is_done;
  int in = 0, out = 1;  ///< file descriptors
};

/// A worker's life: simulates the points that are asked for on `in`, appends their rows to a part file of its own, and tells of each on
/// `out`; ends with its input. Lines of text in both directions:
///   <  points 120            first of all: how many the sweep has
///   >  16 4                  do the 4 points from number 16 on
///   <  16 ok                 the row is written (or: failed; or: known, it was there)
///   <  ! cannot write …      nothing more can be done; the worker ends
/// Returns the exit code. The process must have one thread.
int serve_points(const Sweep& sweep, const WorkerTask& task);

/// Points to be done by worker processes of this machine.
struct PoolTask {
  std::deque<std::size_t> points;
  std::filesystem::path directory;
  ChildLimits limits;
  std::size_t jobs = 1;  ///< workers at the same time
  /// Called after each point with how many are done and how many of these failed, and once in a while in between; may be empty.
  std::function<void(std::size_t done, std::size_t failed)> on_progress;
};

enum class PoolEnd {
  all_done,
  interrupted,  ///< by SIGINT, SIGTERM or SIGHUP; what is done is safe
};

/// Forks the workers, hands out the points, and waits. A worker that is killed is replaced, and its point tried once more. Throws
/// EnvironmentError when results cannot be written or no process be started. The process must have one thread.
PoolEnd run_pool(const Sweep& sweep, const PoolTask& task);

}  // namespace windtunnel
