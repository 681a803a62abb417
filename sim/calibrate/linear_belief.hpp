#pragma once

#include <vector>

namespace windtunnel {

/// Knowledge of the logarithms of some constants: a normal distribution about their given values. Times depend on them as
///   ln t = ln t0 + gradient . (x - x0),
/// so that a measured time narrows it, whatever the time turns out to be (Gaussian linear model; Sherman & Morrison 1950):
///   C' = C - (C g)(C g)^T / (noise^2 + g^T C g)
class LinearBelief {
 public:
  /// Independent constants with these standard deviations.
  explicit LinearBelief(const std::vector<double>& spreads);

  /// Of ln t: the part that the constants leave open.
  double variance(const std::vector<double>& gradient) const;
  /// variance(`asked`) if a time with `gradient` were measured, whose logarithm has errors of standard deviation `noise`.
  double variance_after(const std::vector<double>& asked, const std::vector<double>& gradient,
                        double noise) const;
  void measure(const std::vector<double>& gradient, double noise);
  /// Standard deviation of one constant.
  double spread(std::size_t constant) const;

 private:
  std::vector<double> times_covariance(const std::vector<double>& vector) const;

  std::vector<std::vector<double>> covariance_;
};

}  // namespace windtunnel
