#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>

#include "sweep/row.hpp"
#include "sweep/sweep.hpp"

namespace windtunnel {

/// Points to be done by worker processes of this machine.
struct PoolTask {
  std::deque<std::size_t> points;
  std::filesystem::path directory;
  PointLimits limits;
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
