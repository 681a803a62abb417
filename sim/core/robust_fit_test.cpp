#include "core/robust_fit.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace windtunnel {
namespace {

/// ln(a x + b / measured) with measured = 2 x + 3: the constants are 2 and 3.
FitProblem line_problem(double spoilt) {
  FitProblem problem;
  problem.start = {1, 1};
  problem.lower = {0.01, 0.01};
  problem.upper = {100, 100};
  problem.weights.assign(10, 1.0);
  problem.residuals = [spoilt](const std::vector<double>& constants) {
    std::vector<double> residuals;
    for (int x = 1; x <= 10; ++x) {
      const double measured = (2.0 * x + 3) * (x == 5 ? spoilt : 1);
      residuals.push_back(std::log((constants[0] * x + constants[1]) / measured));
    }
    return residuals;
  };
  return problem;
}

TEST_CASE("the constants behind clean data are found again") {
  const RobustFit fit = robust_fit(line_problem(1));
  CHECK(fit.values[0] == doctest::Approx(2).epsilon(1e-4));
  CHECK(fit.values[1] == doctest::Approx(3).epsilon(1e-4));
  CHECK(fit.cost < 1e-6);
  CHECK(fit.correlations[0][1] < -0.5);  // more slope makes up for less offset
  // d ln(2x+3) / d ln(slope) at x = 1 is 2/5
  CHECK(fit.sensitivities[0][0] == doctest::Approx(0.4).epsilon(1e-2));
}

TEST_CASE("one row of ten that is half as fast again moves the constants by less than 6 %") {
  const RobustFit fit = robust_fit(line_problem(1.5));
  CHECK(fit.values[0] == doctest::Approx(2).epsilon(0.06));
  CHECK(fit.values[1] == doctest::Approx(3).epsilon(0.06));
}

TEST_CASE("a constant stops at its bound and the other one makes the best of it") {
  FitProblem problem = line_problem(1);
  problem.upper[0] = 1.5;
  const RobustFit fit = robust_fit(problem);
  CHECK(fit.values[0] == doctest::Approx(1.5));
  CHECK(fit.values[1] > 3);
}

TEST_CASE("a constant without effect stays where it starts") {
  FitProblem problem = line_problem(1);
  const auto residuals = problem.residuals;
  problem.residuals = [residuals](const std::vector<double>& constants) {
    return residuals({constants[0], 3});
  };
  const RobustFit fit = robust_fit(problem);
  CHECK(fit.values[0] == doctest::Approx(2).epsilon(1e-4));
  CHECK(fit.values[1] == doctest::Approx(1));
}

TEST_CASE("a prior as precise as the residuals meets them half-way, and tells how sure it is") {
  // One residual ln c - 0.01 of noise 0.05, prior ln c = 0 +- 0.05: the mode is at 0.005, where the
  // loss is still quadratic (s = 0.02), and the width 0.05 / sqrt(2) but for the estimated noise.
  FitProblem problem;
  problem.start = {1};
  problem.lower = {0.1};
  problem.upper = {10};
  problem.weights = {1};
  problem.residuals = [](const std::vector<double>& constants) {
    return std::vector<double>{std::log(constants[0]) - 0.01};
  };
  problem.prior = FitPrior{{1}, {0.05}, 0.05};
  const RobustFit fit = robust_fit(problem);
  CHECK(std::log(fit.values[0]) == doctest::Approx(0.005).epsilon(0.03));
  CHECK(fit.widths[0] == doctest::Approx(0.05 / std::sqrt(2.0)).epsilon(0.03));
}

TEST_CASE("the noise of rows that agree exactly is not 0") {
  // Two rows' worth of 0.05 and four of 0, one constant: sqrt(2 * 0.05^2 / (2 + 4 - 1)).
  CHECK(estimated_noise({0, 0, 0, 0}, 0.05, 1) == doctest::Approx(0.05 * std::sqrt(0.4)));
  // A row that is far off counts as 3 * 0.05.
  CHECK(estimated_noise({9}, 0.05, 1) == doctest::Approx(0.05 * std::sqrt(11.0 / 2)));
}

TEST_CASE("nothing to fit is the problem as it stands") {
  FitProblem problem;
  problem.weights = {1};
  problem.residuals = [](const std::vector<double>&) { return std::vector<double>{0.1}; };
  CHECK(robust_fit(problem).values.empty());
}

}  // namespace
}  // namespace windtunnel
