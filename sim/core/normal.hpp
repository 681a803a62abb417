#pragma once

#include <cmath>

namespace windtunnel {

// The standard normal distribution.
inline constexpr double normal_90th = 1.2815515655446004;  ///< its 90th percentile
inline constexpr double normal_95th = 1.6448536269514722;  ///< its 95th percentile

/// The share of it below `x`.
inline double normal_below(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

}  // namespace windtunnel
