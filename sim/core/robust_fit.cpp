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
    if (problem.prior) {
      centre_ = to_eigen(problem.prior->centres).array().log();
      const double noise = problem.prior->noise;
      stiffness_ = noise * noise / to_eigen(problem.prior->spreads).array().square();
    } else {
      centre_ = point_;
      stiffness_ = VectorXd::Zero(point_.size());
    }
    differentiate();
  }

  RobustFit fit() {
    if (point_.size() == 0) return {{}, {}, {}, {}, cost(point_, residuals_)};
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
            widths(), cost(point_, residuals_)};
  }

 private:
  VectorXd residuals_at(const VectorXd& logarithms) const {
    const std::vector<double> values = problem_->residuals(to_vector(logarithms.array().exp()));
    WT_EXPECT(values.size() == problem_->weights.size());
    return to_eigen(values);
  }

  double cost(const VectorXd& point, const VectorXd& residuals) const {
    const ArrayXd scaled = residuals.array() / loss_scale;
    return 2 * loss_scale * loss_scale *
               (weights_.array() * ((1 + scaled.square()).sqrt() - 1)).sum() +
           (stiffness_.array() * (point - centre_).array().square()).sum();
  }

  /// Weights with which weighted least squares has the gradient of the soft-L1 loss.
  VectorXd robust_weights() const {
    return weights_.array() / (1 + (residuals_.array() / loss_scale).square()).sqrt();
  }

  /// Forward differences; backward where the upper bound is in the way. No step leaves the bounds: beyond them there may be no value.
  void differentiate() {
    derivatives_ = MatrixXd::Zero(residuals_.size(), point_.size());
    for (Index j = 0; j < point_.size(); ++j) {
      const double up = upper_[j] - point_[j], down = point_[j] - lower_[j];
      const double size = std::min(difference_step, std::max(up, down));
      if (!(size > 0)) continue;  // it cannot move
      VectorXd moved = point_;
      const double step = up < size ? -size : size;
      moved[j] += step;
      derivatives_.col(j) = (residuals_at(moved) - residuals_) / step;
    }
    is_exact_ = true;
  }

  /// The damped step; constants that would leave their bounds stay where they are.
  VectorXd step(double damping) const {
    const MatrixXd weighted = robust_weights().asDiagonal() * derivatives_;
    const VectorXd gradient =
        weighted.transpose() * residuals_ + stiffness_.cwiseProduct(point_ - centre_);
    MatrixXd normal = derivatives_.transpose() * weighted;
    normal.diagonal() += stiffness_;
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
    if (!(cost(next, residuals) < cost(point_, residuals_))) {
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

  /// Standard deviations of the posterior; empty without a prior.
  std::vector<double> widths() const {
    if (!problem_->prior) return {};
    constexpr double known = 1e12;  ///< inverse variance of a constant that cannot move
    const auto num_free = static_cast<std::size_t>((upper_.array() > lower_.array()).count());
    const double noise = estimated_noise(to_vector(residuals_), problem_->prior->noise, num_free);
    MatrixXd inverse = derivatives_.transpose() * robust_weights().asDiagonal() * derivatives_;
    inverse /= noise * noise;
    for (Index j = 0; j < point_.size(); ++j) {
      const double spread = problem_->prior->spreads[static_cast<std::size_t>(j)];
      inverse(j, j) += upper_[j] > lower_[j] ? 1 / (spread * spread) : known;
    }
    const Index count = point_.size();
    const MatrixXd covariance = inverse.ldlt().solve(MatrixXd::Identity(count, count));
    return to_vector(covariance.diagonal().array().abs().sqrt());
  }

  const FitProblem* problem_;
  VectorXd weights_, lower_, upper_, point_, residuals_;
  VectorXd centre_, stiffness_;  ///< of the prior; stiffness 0 without one
  MatrixXd derivatives_;
  bool is_exact_ = false;  ///< derivatives_ are differences at point_, not Broyden's guess
};

}  // namespace

double estimated_noise(const std::vector<double>& residuals, double prior_noise,
                       std::size_t num_constants) {
  constexpr double prior_rows = 2;
  constexpr double most_in_noises = 3;
  const double most = most_in_noises * prior_noise;
  double sum = prior_rows * prior_noise * prior_noise;
  for (const double residual : residuals) sum += std::min(residual * residual, most * most);
  const double freedom =
      prior_rows + static_cast<double>(residuals.size()) - static_cast<double>(num_constants);
  return std::sqrt(sum / std::max(1.0, freedom));
}

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
