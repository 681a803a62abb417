#pragma once

#include <cstddef>
#include <vector>

namespace windtunnel {

/// Which of many like parts differs from the others by more than their scatter.
///
/// `deviations` are logarithms of each part's figure over the median of its peers. Their scatter is 1.4826 times their median size
/// (the standard deviation of a normal distribution, untouched by up to half of the parts being faulty). A part's deviation
/// over the scatter is compared with Student's t distribution with 0.37 (n - 1) degrees of freedom, 0.37 being the efficiency of
/// that estimate of scatter (Rousseeuw and Croux, J. Am. Stat. Assoc. 88, 1993), and the probability is multiplied by n, for as many
/// parts were looked at (Bonferroni). An outlier's is below `false_alarm_rate`: that many healthy jobs have one by chance.
class OutlierTest {
 public:
  /// The scatter is at least `least_scatter`: that of some of the parts, which scatter more than all.
  explicit OutlierTest(const std::vector<double>& deviations, double least_scatter = 0);

  /// Whether a part whose deviation is this is larger than chance makes any of them.
  bool is_outlier(double deviation) const { return chance_of(deviation) < false_alarm_rate; }
  /// The probability that any of so many healthy parts deviates by as much, upwards.
  double chance_of(double deviation) const;
  /// The smallest deviation that is an outlier: what a fault must make of a part to be told from chance. Infinite of fewer than three parts.
  double least_outlier() const;
  double scatter() const { return scatter_; }

  static constexpr double false_alarm_rate = 0.001;

 private:
  double degrees_of_freedom() const;

  std::size_t count_;
  double scatter_;
};

/// The probability that a variable of Student's t distribution exceeds t > 0.
double student_tail(double t, double degrees_of_freedom);

}  // namespace windtunnel
