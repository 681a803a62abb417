#pragma once

#include <map>
#include <string>
#include <vector>

#include "evidence/measurement_set.hpp"
#include "validate/point_prediction.hpp"

namespace windtunnel {

/// A timer of a training program beside its prediction.
struct TimerComparison {
  std::string id, name;
  Seconds measured{}, predicted{};

  double error() const { return (predicted - measured) / measured; }
};

/// The timers that are predicted: "forward-compute" and "backward-compute" of the last rank, summed
/// over the microbatches of an iteration. Megatron synchronises the GPU at their ends.
std::vector<TimerComparison> compare_timers(const MeasurementPoint& point,
                                            const PointPrediction& predicted);

/// Relative errors by timer.
std::map<std::string, std::vector<double>> timer_errors(
    const std::vector<TimerComparison>& comparisons);

}  // namespace windtunnel
