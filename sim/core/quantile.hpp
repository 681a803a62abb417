#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace windtunnel {

/// Between the two nearest of `sorted`, linearly: share 0 is the first, 1 the last. There must be one.
template <typename Value>
Value quantile(const std::vector<Value>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

}  // namespace windtunnel
