#include "importers/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

#include "core/quantile.hpp"

namespace windtunnel {

double student_tail(double t, double degrees_of_freedom) {
  return boost::math::cdf(boost::math::complement(boost::math::students_t(degrees_of_freedom), t));
}

OutlierTest::OutlierTest(const std::vector<double>& deviations, double least_scatter)
    : count_(deviations.size()), scatter_(least_scatter) {
  std::vector<double> sizes;
  for (const double deviation : deviations) sizes.push_back(std::abs(deviation));
  if (sizes.empty()) return;
  constexpr double normal_over_median =
      1.4826;  // standard deviation over the median size, of a normal distribution
  scatter_ = std::max(scatter_, normal_over_median * median_of(std::move(sizes)));
}

double OutlierTest::degrees_of_freedom() const {
  constexpr double efficiency = 0.37;
  return efficiency * static_cast<double>(count_ - 1);
}

double OutlierTest::least_outlier() const {
  if (count_ < 3) return std::numeric_limits<double>::infinity();
  const double share = false_alarm_rate / static_cast<double>(count_);
  // In double precision alone: tables of long doubles are computed as the program starts, and valgrind has none.
  using InDoubles = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
  const boost::math::students_t_distribution<double, InDoubles> distribution(degrees_of_freedom());
  return scatter_ * boost::math::quantile(boost::math::complement(distribution, share));
}

double OutlierTest::chance_of(double deviation) const {
  if (count_ < 3 || deviation <= 0) return 1;
  if (scatter_ <= 0) return 0;
  const double tail = student_tail(deviation / scatter_, degrees_of_freedom());
  return std::min(1.0, tail * static_cast<double>(count_));
}

}  // namespace windtunnel
