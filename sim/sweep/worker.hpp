#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>

#include "sweep/row.hpp"
#include "sweep/sweep.hpp"

namespace windtunnel {

/// Inputs of a worker beside the sweep.
struct WorkerTask {
  std::filesystem::path directory;
  PointLimits limits;
  /// Points that need not be done again; may be empty.
  std::function<bool(std::size_t)> is_done;
  int in = 0, out = 1;  ///< file descriptors
};

/// A worker's life: simulates the points that are asked for on `in`, appends their rows to a part file of its own, and tells of each on
/// `out`; ends with its input. Lines of text both ways:
///   <  points 120            first of all: how many the sweep has
///   >  16 4                  do the 4 points from number 16 on
///   <  16 ok                 the row is written (or: failed; or: known, it was there)
///   <  ! cannot write …      nothing more can be done; the worker ends
/// Returns the exit code. The process must have one thread.
int serve_points(const Sweep& sweep, const WorkerTask& task);

}  // namespace windtunnel
