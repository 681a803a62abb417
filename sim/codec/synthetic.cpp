#include "codec/synthetic.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <set>
#include <vector>

#include "core/interruption.hpp"

namespace windtunnel {
namespace {

constexpr std::size_t gradient_rank = 32;
constexpr double gradient_noise = 0.3;  ///< norm of the noise over that of the signal
constexpr double gradient_rms = 1e-3;
constexpr int tail_freedom = 4;  ///< degrees of freedom of Student's t
constexpr std::size_t columns_per_outlier = 1000;
constexpr double outlier_factor = 20;

/// Standard normal numbers by Box and Muller (Ann. Math. Stat. 29, 1958): the standard library's distributions differ between
/// implementations, its generators do not.
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : generator_(seed) {}

  double operator()() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  /// From 0 to 1, 1 excluded.
  double uniform() {
    constexpr int kept_bits = 53;
    return std::ldexp(static_cast<double>(generator_() >> (64 - kept_bits)), -kept_bits);
  }

 private:
  std::mt19937_64 generator_;
};

using Matrix = Eigen::MatrixXd;

Matrix normal_matrix(std::size_t rows, std::size_t columns, Normal& normal) {
  Matrix matrix(static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns));
  for (Eigen::Index j = 0; j < matrix.cols(); ++j) {
    expect_not_interrupted();
    for (Eigen::Index i = 0; i < matrix.rows(); ++i) matrix(i, j) = normal();
  }
  return matrix;
}

Matrix gradient(std::size_t rows, std::size_t columns, Normal& normal) {
  const std::size_t rank = std::min({gradient_rank, rows, columns});
  Matrix u = normal_matrix(rows, rank, normal), v = normal_matrix(columns, rank, normal);
  u.colwise().normalize();
  v.colwise().normalize();
  for (Eigen::Index i = 0; i < u.cols(); ++i) u.col(i) /= static_cast<double>(i + 1);
  const Matrix signal = u * v.transpose();
  const Matrix noise = normal_matrix(rows, columns, normal);
  const Matrix sum = signal + noise * (gradient_noise * signal.norm() / noise.norm());
  return sum * (gradient_rms * std::sqrt(static_cast<double>(sum.size())) / sum.norm());
}

Matrix activation(std::size_t rows, std::size_t columns, Normal& normal) {
  Matrix matrix(static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns));
  for (Eigen::Index j = 0; j < matrix.cols(); ++j) {
    expect_not_interrupted();
    for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
      double squares = 0;
      for (int k = 0; k < tail_freedom; ++k) {
        const double number = normal();
        squares += number * number;
      }
      matrix(i, j) = normal() / std::sqrt(squares / tail_freedom);
    }
  }
  std::set<Eigen::Index> outliers;
  while (outliers.size() * columns_per_outlier < columns)
    outliers.insert(static_cast<Eigen::Index>(normal.uniform() * static_cast<double>(columns)));
  for (const Eigen::Index column : outliers) matrix.col(column) *= outlier_factor;
  return matrix;
}

}  // namespace

Tensor synthetic_tensor(SyntheticKind kind, std::size_t rows, std::size_t columns,
                        std::uint64_t seed) {
  Normal normal(seed);
  const bool is_gradient = kind == SyntheticKind::gradient;
  const Matrix matrix =
      is_gradient ? gradient(rows, columns, normal) : activation(rows, columns, normal);
  Tensor tensor;
  tensor.source = is_gradient ? "synthetic gradient" : "synthetic activation";
  tensor.rows = rows;
  tensor.columns = columns;
  tensor.values.reserve(rows * columns);
  for (Eigen::Index i = 0; i < matrix.rows(); ++i)
    for (Eigen::Index j = 0; j < matrix.cols(); ++j)
      tensor.values.push_back(static_cast<float>(matrix(i, j)));
  return tensor;
}

std::vector<float> normal_numbers(std::size_t count, std::uint64_t seed) {
  Normal normal(seed);
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(normal());
  return numbers;
}

}  // namespace windtunnel
