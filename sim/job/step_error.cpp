#include "job/step_error.hpp"

#include <algorithm>
#include <cmath>

#include "core/contracts.hpp"
#include "core/normal.hpp"
#include "core/quantile.hpp"

namespace windtunnel {
namespace {

constexpr double low_share = 0.05, high_share = 0.95;

/// P(R <= e^x) of figure_of(); `low` and `high` in logarithms.
double probability_up_to(double x, double low, double high) {
  const double end = x < 0 ? -low : high;
  if (end <= 0) return x < 0 ? 0 : 1;
  return normal_below(normal_95th * x / end);
}

/// The logarithm of the `share` quantile of X R, by bisection; `draws`, `low` and `high` in logarithms.
double quantile_of_both(const std::vector<double>& draws, double low, double high, double share) {
  // Three times an end is where R lies in fewer than one case of a million.
  constexpr double far = 3, precise = 1e-9;
  const auto [least, most] = std::ranges::minmax_element(draws);
  double from = *least + far * low - precise, to = *most + far * high;
  while (to - from > precise) {
    const double middle = from + (to - from) / 2;
    double sum = 0;
    for (const double draw : draws) sum += probability_up_to(middle - draw, low, high);
    (sum < share * static_cast<double>(draws.size()) ? from : to) = middle;
  }
  return to;
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  WT_EXPECT(!values.empty());
  std::ranges::sort(values);
  constexpr double half = 0.5;
  return {quantile(values, half), quantile(values, low_share), quantile(values, high_share)};
}

JobFigure figure_of(const std::vector<double>& draws, double low, double high) {
  WT_EXPECT(low > 0 && low <= 1 && high >= 1);
  const Spread run = spread_of(draws);
  JobFigure figure{run, run, {run.median, run.median * low, run.median * high}};
  std::vector<double> logarithms;
  for (const double draw : draws)
    if (draw > 0) logarithms.push_back(std::log(draw));
  // Without a price per hour all draws cost nothing.
  if (low == high || logarithms.size() < draws.size()) return figure;
  figure.low = std::exp(quantile_of_both(logarithms, std::log(low), std::log(high), low_share));
  figure.high = std::exp(quantile_of_both(logarithms, std::log(low), std::log(high), high_share));
  return figure;
}

}  // namespace windtunnel
