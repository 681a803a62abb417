#pragma once

#include <functional>
#include <vector>

namespace windtunnel {

/// Positive constants to be found such that the residuals become small.
struct FitProblem {
  std::vector<double> start, lower, upper;  ///< of each constant, 0 < lower <= start <= upper
  std::vector<double> weights;              ///< of each residual
  /// The residuals at given constants, as natural logarithms of ratios; always as many as weights.
  std::function<std::vector<double>(const std::vector<double>&)> residuals;
};

/// The constants found, and how firmly the residuals hold them.
struct RobustFit {
  std::vector<double> values;
  /// sensitivities[j][i]: d residual_i / d ln(constant_j) at the solution.
  std::vector<std::vector<double>> sensitivities;
  /// correlations[j][k] of the errors of constants j and k: near 1 in size, one makes up for the
  /// other and their values mean little on their own.
  std::vector<std::vector<double>> correlations;
  double cost = 0;
};

/// Minimises  sum_i w_i * 2 s^2 (sqrt(1 + (r_i/s)^2) - 1)  over the logarithms of the constants,
/// within their bounds. This soft-L1 loss grows as r^2 for residuals below s = 0.02 and as |r|
/// beyond, so that a few slow rows do not pull the fit; s is the spread of regular rows, 2.3 % in
/// vtrain-a100-multi-node without its outliers (Charbonnier et al., IEEE Trans. Image Process. 6(2),
/// 298-311, 1997). Levenberg-Marquardt with reweighting, forward differences of 0.1 %, and
/// Broyden's update between them (Madsen, Nielsen, Tingleff, Methods for Non-Linear Least Squares
/// Problems, DTU 2004, algorithm 3.16 and section 3.5): residuals are simulations, and dear. Finds
/// the nearest minimum; stops when a step moves no constant by more than 0.01 %.
RobustFit robust_fit(const FitProblem& problem);

}  // namespace windtunnel
