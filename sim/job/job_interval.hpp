#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "job/job_model.hpp"

namespace windtunnel {

/// Mean length of a job with a checkpoint every so many steps.
struct IntervalPoint {
  std::int64_t steps = 0;
  double mean_seconds = 0;
};

/// How the length of a job depends on the interval of its checkpoints, played with the same failures for each.
struct IntervalCurve {
  std::vector<IntervalPoint> points;  ///< by number of steps
  double best_steps = 0;  ///< where the curve c + a t + b / t through the points is lowest
};

/// Nothing where nothing fails, or a checkpoint costs nothing.
std::optional<IntervalCurve> interval_curve(const JobModel& model, std::uint64_t seed,
                                            std::size_t at_once);

}  // namespace windtunnel
