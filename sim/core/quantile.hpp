#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
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

/// The mean of the two in the middle of an even number. There must be one value.
template <typename Value>
Value median_of(std::vector<Value> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// The lower of the two in the middle of an even number.
template <typename Value>
Value lower_median_of(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The upper of the two in the middle of an even number.
template <typename Value>
Value upper_median_of(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// 0 where there is none.
inline double mean_of(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace windtunnel
