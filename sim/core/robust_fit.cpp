#include "core/robust_fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double loss_scale = 0.02;       ///< s: larger residuals count by their size only
constexpr double difference_step = 1e-3;  ///< of a logarithm, for the derivatives
constexpr double smallest_step = 1e-4;    ///< of a logarithm: smaller ones end the fit
constexpr int most_steps = 60;
constexpr double first_damping = 1e-3;
constexpr double most_damping = 1e6;
constexpr double damping_factor = 4;

VectorXd to_eigen(const std::vector<double>& values) {
  return Eigen::Map<const VectorXd>(values.data(), static_cast<Index>(values.size()));
}

std::vector<double> to_vector(const VectorXd& values) {
  return {values.data(), values.data() + values.size()};
}

std::vector<std::vector<double>> columns_of(const MatrixXd& matrix) {
  std::vector<std::vector<double>> columns;
  for (Index j = 0; j < matrix.cols(); ++j) columns.push_back(to_vector(matrix.col(j)));
  return columns;
}

/// One fit on its way: where it stands, its residuals and its derivatives there.
class RobustFitter {
 public:
  explicit RobustFitter(const FitProblem& problem)
      : problem_(&problem),
        weights_(to_eigen(problem.weights)),
        lower_(to_eigen(problem.lower).array().log()),
        upper_(to_eigen(problem.upper).array().log()),
        point_(to_eigen(problem.start).array().log()),
        residuals_(residuals_at(point_)) {
    differentiate();
  }

  RobustFit fit() {
    if (point_.size() == 0) return {{}, {}, {}, cost(residuals_)};
    double damping = first_damping;
    for (int steps = 0; steps < most_steps && damping < most_damping; ++steps) {
      const VectorXd next = (point_ + step(damping)).cwiseMax(lower_).cwiseMin(upper_);
      if ((next - point_).lpNorm<Eigen::Infinity>() < smallest_step) {
        if (is_exact_) break;
        differentiate();
        continue;
      }
      damping = try_move(next) ? damping / damping_factor : damping * damping_factor;
    }
    if (!is_exact_) differentiate();
    return {to_vector(point_.array().exp()), columns_of(derivatives_), columns_of(correlations()),
            cost(residuals_)};
  }

 private:
  VectorXd residuals_at(const VectorXd& logarithms) const {
    const std::vector<double> values = problem_->residuals(to_vector(logarithms.array().exp()));
    WT_EXPECT(values.size() == problem_->weights.size());
    return to_eigen(values);
  }

  double cost(const VectorXd& residuals) const {
    const ArrayXd scaled = residuals.array() / loss_scale;
    return 2 * loss_scale * loss_scale *
           (weights_.array() * ((1 + scaled.square()).sqrt() - 1)).sum();
  }

  /// What makes weighted least squares have the gradient of the soft-L1 loss.
  VectorXd robust_weights() const {
    return weights_.array() / (1 + (residuals_.array() / loss_scale).square()).sqrt();
  }

  /// Forward differences; backward where the upper bound is in the way.
  void differentiate() {
    derivatives_.resize(residuals_.size(), point_.size());
    for (Index j = 0; j < point_.size(); ++j) {
      VectorXd moved = point_;
      const double sign = point_[j] + difference_step > upper_[j] ? -1 : 1;
      moved[j] += sign * difference_step;
      derivatives_.col(j) = (residuals_at(moved) - residuals_) / (sign * difference_step);
    }
    is_exact_ = true;
  }

  /// The damped step; constants that would leave their bounds stay where they are.
  VectorXd step(double damping) const {
    const MatrixXd weighted = robust_weights().asDiagonal() * derivatives_;
    const VectorXd gradient = weighted.transpose() * residuals_;
    MatrixXd normal = derivatives_.transpose() * weighted;
    VectorXd wanted = -gradient;
    for (Index j = 0; j < point_.size(); ++j) {
      normal(j, j) = normal(j, j) * (1 + damping) + 1e-12;
      const bool leaves = gradient[j] > 0 ? point_[j] <= lower_[j] : point_[j] >= upper_[j];
      if (!leaves) continue;
      normal.row(j).setZero();
      normal.col(j).setZero();
      normal(j, j) = 1;
      wanted[j] = 0;
    }
    return normal.ldlt().solve(wanted);
  }

  /// Moves to `next` when that lowers the cost.
  bool try_move(const VectorXd& next) {
    const VectorXd residuals = residuals_at(next);
    if (!(cost(residuals) < cost(residuals_))) {
      if (!is_exact_) differentiate();
      return false;
    }
    const VectorXd moved = next - point_;
    const VectorXd missed = residuals - residuals_ - derivatives_ * moved;
    derivatives_ += missed * moved.transpose() / moved.squaredNorm();
    is_exact_ = false;
    point_ = next;
    residuals_ = residuals;
    return true;
  }

  MatrixXd correlations() const {
    const Index count = point_.size();
    MatrixXd normal = derivatives_.transpose() * robust_weights().asDiagonal() * derivatives_;
    normal.diagonal().array() += 1e-12;
    const MatrixXd covariance = normal.ldlt().solve(MatrixXd::Identity(count, count));
    const VectorXd deviations = covariance.diagonal().array().abs().sqrt();
    return covariance.array() / (deviations * deviations.transpose()).array();
  }

  const FitProblem* problem_;
  VectorXd weights_, lower_, upper_, point_, residuals_;
  MatrixXd derivatives_;
  bool is_exact_ = false;  ///< derivatives_ are differences at point_, not Broyden's guess
};

}  // namespace

RobustFit robust_fit(const FitProblem& problem) {
  const std::size_t count = problem.start.size();
  WT_EXPECT(problem.lower.size() == count && problem.upper.size() == count);
  for (std::size_t j = 0; j < count; ++j) {
    WT_EXPECT(problem.lower[j] > 0 && problem.lower[j] <= problem.start[j]);
    WT_EXPECT(problem.start[j] <= problem.upper[j]);
  }
  return RobustFitter(problem).fit();
}

}  // namespace windtunnel
