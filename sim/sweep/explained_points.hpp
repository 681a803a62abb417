#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "sweep/row.hpp"
#include "sweep/sweep.hpp"

namespace windtunnel {

/// A point of a sweep simulated once more, with everything that `run` says of it.
struct ExplainedPoint {
  std::size_t point = 0;
  JsonValue report;   ///< as run --json has it
  JsonValue reasons;  ///< by line of the breakdown, what makes it so long
};

/// Simulates those points, each in a process of its own, several at once. Points that fail are left out.
std::vector<ExplainedPoint> explain_points(const Sweep& sweep,
                                           const std::vector<std::size_t>& points,
                                           const PointLimits& limits);

}  // namespace windtunnel
