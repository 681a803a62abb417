#include "importers/outliers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "importers/rate_matrix.hpp"

namespace windtunnel {
namespace {

/// The continued fraction of the incomplete beta function, by Lentz's method (Abramowitz and Stegun 26.5.8).
double beta_fraction(double x, double a, double b) {
  constexpr int most_terms = 500;
  constexpr double tiny = 1e-300, exact = 1e-14;
  const auto kept_off_zero = [](double value) { return std::abs(value) < tiny ? tiny : value; };
  double c = 1, d = 1 / kept_off_zero(1 - (a + b) * x / (a + 1)), fraction = d;
  for (int term = 1; term < most_terms; ++term) {
    const double m = term;
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / kept_off_zero(1 + even * d);
    c = kept_off_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / kept_off_zero(1 + odd * d);
    c = kept_off_zero(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) < exact) break;
  }
  return fraction;
}

/// The regularized incomplete beta function I_x(a, b).
double incomplete_beta(double x, double a, double b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(x, a, b) / a;
  return 1 - front * beta_fraction(1 - x, b, a) / b;
}

}  // namespace

double student_tail(double t, double degrees_of_freedom) {
  return incomplete_beta(degrees_of_freedom / (degrees_of_freedom + t * t), degrees_of_freedom / 2,
                         0.5) /
         2;
}

OutlierTest::OutlierTest(const std::vector<double>& deviations) : count_(deviations.size()) {
  std::vector<double> sizes;
  for (const double deviation : deviations) sizes.push_back(std::abs(deviation));
  if (sizes.empty()) return;
  constexpr double normal_over_median =
      1.4826;  // standard deviation over the median size, of a normal distribution
  scatter_ = normal_over_median * median_of(std::move(sizes));
}

OutlierTest::OutlierTest(const std::vector<double>& deviations, double least_scatter)
    : OutlierTest(deviations) {
  scatter_ = std::max(scatter_, least_scatter);
}

double OutlierTest::least_outlier() const {
  constexpr double largest = 100;  // e^100 times as long
  if (!is_outlier(largest)) return std::numeric_limits<double>::infinity();
  double low = 0, high = largest;
  constexpr double exact = 1e-6;
  while (high - low > exact) {
    const double middle = (low + high) / 2;
    (is_outlier(middle) ? high : low) = middle;
  }
  return high;
}

double OutlierTest::chance_of(double deviation) const {
  constexpr double efficiency = 0.37;
  if (count_ < 3 || deviation <= 0) return 1;
  if (scatter_ <= 0) return 0;
  const double tail =
      student_tail(deviation / scatter_, efficiency * static_cast<double>(count_ - 1));
  return std::min(1.0, tail * static_cast<double>(count_));
}

}  // namespace windtunnel
