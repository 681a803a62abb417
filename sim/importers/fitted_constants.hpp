#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/robust_fit.hpp"

namespace windtunnel {

/// One number of what is fitted: what it is called in the file, and the range it may have.
template <class Subject>
struct FittedConstant {
  std::string key;
  std::function<void(Subject&, double)> set;
  double start, lower, upper;
};
template <class Subject>
using FittedConstants = std::vector<FittedConstant<Subject>>;

/// `base` with these values of its constants.
template <class Subject>
Subject with(const Subject& base, const FittedConstants<Subject>& constants,
             const std::vector<double>& values) {
  Subject result = base;
  for (std::size_t i = 0; i < constants.size(); ++i) constants[i].set(result, values[i]);
  return result;
}

/// The problem of finding the constants. `residuals` are those of a candidate; `base` and `constants` must outlive the problem.
template <class Subject>
FitProblem problem_of(const Subject& base, const FittedConstants<Subject>& constants,
                      std::vector<double> weights,
                      std::function<std::vector<double>(const Subject&)> residuals) {
  FitProblem problem;
  problem.weights = std::move(weights);
  for (const FittedConstant<Subject>& each : constants) {
    problem.start.push_back(each.start);
    problem.lower.push_back(each.lower);
    problem.upper.push_back(each.upper);
  }
  problem.residuals = [&base, &constants,
                       residuals = std::move(residuals)](const std::vector<double>& values) {
    return residuals(with(base, constants, values));
  };
  return problem;
}

/// Of two groups of constants, the factors by which their starts are moved.
using StartFactors = std::array<double, 3>;

/// The best fit over all pairs of `first` and `second`; `factor_of(key, first, second)` says what a constant's start is multiplied by.
template <class Subject>
RobustFit best_fit(FitProblem problem, const FittedConstants<Subject>& constants,
                   const StartFactors& first, const StartFactors& second,
                   const std::function<double(const std::string&, double, double)>& factor_of) {
  RobustFit best;
  best.cost = std::numeric_limits<double>::infinity();
  for (const double one : first)
    for (const double other : second) {
      for (std::size_t i = 0; i < constants.size(); ++i) {
        const FittedConstant<Subject>& each = constants[i];
        problem.start[i] =
            std::clamp(each.start * factor_of(each.key, one, other), each.lower, each.upper);
      }
      RobustFit fit = robust_fit(problem);
      if (fit.cost < best.cost) best = std::move(fit);
    }
  return best;
}

/// How much all residuals together move with a constant.
inline double total(const std::vector<double>& sensitivities) {
  double sum = 0;
  for (const double each : sensitivities) sum += std::abs(each);
  return sum;
}

}  // namespace windtunnel
