#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace windtunnel {

/// Prior of the constants, before the residuals: a log-normal distribution of each.
struct FitPrior {
  std::vector<double> centres;  ///< medians, above 0
  std::vector<double> spreads;  ///< standard deviations of ln(constant)
  double noise = 0;  ///< standard deviation of a residual: what a row weighs against them
};

/// Positive constants to be found such that the residuals become small.
struct FitProblem {
  std::vector<double> start, lower, upper;  ///< of each constant, 0 < lower <= start <= upper
  std::vector<double> weights;              ///< of each residual
  /// The residuals at given constants, as natural logarithms of ratios; always as many as weights.
  std::function<std::vector<double>(const std::vector<double>&)> residuals;
  std::optional<FitPrior> prior;  ///< none: the residuals alone decide
};

/// The constants found, and how firmly the residuals hold them.
struct RobustFit {
  std::vector<double> values;
  /// sensitivities[j][i]: d residual_i / d ln(constant_j) at the solution.
  std::vector<std::vector<double>> sensitivities;
  /// correlations[j][k] of the errors of constants j and k: near 1 in size, one makes up for the
  /// other and their values mean little on their own.
  std::vector<std::vector<double>> correlations;
  /// With a prior: the posterior's standard deviation of ln(constant), linearised at the solution.
  /// A constant whose bounds are equal counts as known.
  std::vector<double> widths;
  double cost = 0;
};

/// The noise of a row as the residuals r_i of a fit and the prior tell it: the prior's noise s counts
/// as two rows, and no row for more than (3 s)^2, so that two rows that happen to agree do not look
/// exact and one that is far off does not hide the others.
///   noise^2 = (2 s^2 + sum_i min(r_i^2, 9 s^2)) / (2 + n - k),   n rows, k < n + 2 constants
/// An inverse-gamma prior of the variance (Gelman et al., Bayesian Data Analysis, 2013, section 2.6).
double estimated_noise(const std::vector<double>& residuals, double prior_noise,
                       std::size_t num_constants);

/// Minimises  sum_i w_i * 2 s^2 (sqrt(1 + (r_i/s)^2) - 1)  over the logarithms of the constants,
/// within their bounds. This soft-L1 loss grows as r^2 for residuals below s = 0.02 and as |r|
/// beyond, so that a few slow rows do not pull the fit; s is the spread of regular rows, 2.3 % in
/// vtrain-a100-multi-node without its outliers (Charbonnier et al., IEEE Trans. Image Process. 6(2),
/// 298-311, 1997). Levenberg-Marquardt with reweighting, forward differences of 0.1 %, and
/// Broyden's update between them (Madsen, Nielsen, Tingleff, Methods for Non-Linear Least Squares
/// Problems, DTU 2004, algorithm 3.16 and section 3.5): residuals are simulations, and dear. Finds
/// the nearest minimum; stops when a step moves no constant by more than 0.01 %.
/// A prior adds  noise^2 sum_j (ln(c_j / centre_j) / spread_j)^2,  which makes the result the mode of
/// the posterior.
RobustFit robust_fit(const FitProblem& problem);

}  // namespace windtunnel
