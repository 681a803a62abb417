#include "evidence/allowance.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

/// A number and what it counts.
using Weighted = std::pair<double, double>;

/// The first of the sorted numbers at which `share` of the weight is reached.
double weighted_quantile(std::vector<Weighted> numbers, double share) {
  WT_EXPECT(!numbers.empty());
  std::ranges::sort(numbers);
  const double weight =
      std::accumulate(numbers.begin(), numbers.end(), 0.0,
                      [](double sum, const Weighted& each) { return sum + each.second; });
  const double wanted = share * weight - 1e-9;
  double held = 0;
  for (const auto& [number, counts] : numbers)
    if ((held += counts) >= wanted) return number;
  return numbers.back().first;
}

}  // namespace

Allowance fitted_allowance(const std::vector<SizedError>& errors) {
  std::map<std::string, double> count;
  for (const SizedError& each : errors) ++count[each.set];
  std::vector<Weighted> shares;
  for (const SizedError& each : errors) shares.emplace_back(each.share, 1 / count[each.set]);
  const double few = weighted_quantile(shares, 1.0 / 3), much = weighted_quantile(shares, 2.0 / 3);
  std::array<std::vector<Weighted>, 2> error_of, share_of;  // of the outer thirds
  for (const SizedError& each : errors) {
    if (each.share > few && each.share < much) continue;
    const std::size_t third = each.share <= few ? 0 : 1;
    error_of[third].emplace_back(each.error, 1 / count[each.set]);
    share_of[third].emplace_back(each.share, 1 / count[each.set]);
  }
  constexpr double half = 0.5, least = 1e-4;
  Allowance fitted{std::max(weighted_quantile(error_of[0], half), least), 0};
  if (error_of[1].empty()) return fitted;  // all alike
  const double near = weighted_quantile(share_of[0], half),
               far = weighted_quantile(share_of[1], half);
  fitted.growth =
      std::max((weighted_quantile(error_of[1], half) - fitted.base) / (far - near), 0.0);
  fitted.base = std::max(fitted.base - fitted.growth * near, least);
  return fitted;
}

double share_outside_kernels(const Breakdown& breakdown) {
  const Seconds total = breakdown.total();
  return total > Seconds{} ? 1 - breakdown.of(Line::compute) / total : 0;
}

}  // namespace windtunnel
