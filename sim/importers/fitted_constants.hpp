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

/// How far measured times are from the fitted ones.
struct FitError {
  int count = 0;
  double mean = 0, worst = 0;  ///< without signs
};
/// Of fitted over measured times, less 1.
inline FitError fit_error(const std::vector<double>& errors) {
  FitError result;
  for (const double error : errors) {
    ++result.count;
    result.mean += std::abs(error);
    result.worst = std::max(result.worst, std::abs(error));
  }
  if (result.count > 0) result.mean /= result.count;
  return result;
}

/// One number of what is fitted: what it is called in the file, and the range it may have.
template <class Subject>
struct FittedConstant {
  std::string key;
  std::function<void(Subject&, double)> set;
  double start, lower, upper;
};

/// The search for some constants of `base`, such that the residuals of a candidate become small. Base and constants must outlive it.
template <class Subject>
class ConstantSearch {
 public:
  using Constants = std::vector<FittedConstant<Subject>>;
  using StartFactors = std::array<double, 3>;
  using FactorOf = std::function<double(const std::string& key, double first, double second)>;

  ConstantSearch(const Subject& base, const Constants& constants, std::vector<double> weights,
                 std::function<std::vector<double>(const Subject&)> residuals)
      : base_(base), constants_(constants) {
    problem_.weights = std::move(weights);
    for (const FittedConstant<Subject>& each : constants) {
      problem_.start.push_back(each.start);
      problem_.lower.push_back(each.lower);
      problem_.upper.push_back(each.upper);
    }
    problem_.residuals = [this, residuals = std::move(residuals)](
                             const std::vector<double>& values) { return residuals(with(values)); };
  }
  ConstantSearch(const ConstantSearch&) = delete;

  /// The best fit from all starts that two groups of constants have when they are moved by a factor each; `factor_of` says what the
  /// start of a constant is multiplied by.
  RobustFit best_fit(const StartFactors& first, const StartFactors& second,
                     const FactorOf& factor_of) {
    RobustFit best;
    best.cost = std::numeric_limits<double>::infinity();
    for (const double one : first)
      for (const double other : second) {
        for (std::size_t i = 0; i < constants_.size(); ++i) {
          const FittedConstant<Subject>& each = constants_[i];
          problem_.start[i] =
              std::clamp(each.start * factor_of(each.key, one, other), each.lower, each.upper);
        }
        RobustFit fit = robust_fit(problem_);
        if (fit.cost < best.cost) best = std::move(fit);
      }
    return best;
  }

  /// The base with these values of its constants.
  Subject with(const std::vector<double>& values) const {
    Subject result = base_;
    for (std::size_t i = 0; i < constants_.size(); ++i) constants_[i].set(result, values[i]);
    return result;
  }

  /// Sum of weighted absolute residuals, to compare two choices of constants.
  double misfit(const std::vector<double>& values) const {
    const std::vector<double> residuals = problem_.residuals(values);
    double sum = 0;
    for (std::size_t i = 0; i < residuals.size(); ++i)
      sum += problem_.weights[i] * std::abs(residuals[i]);
    return sum;
  }

 private:
  const Subject& base_;
  const Constants& constants_;
  FitProblem problem_;
};

/// How much all residuals together move with a constant.
inline double total(const std::vector<double>& sensitivities) {
  double sum = 0;
  for (const double each : sensitivities) sum += std::abs(each);
  return sum;
}

}  // namespace windtunnel
