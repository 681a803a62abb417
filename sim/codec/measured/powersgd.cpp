#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "codec/measured_codec.hpp"
#include "codec/synthetic.hpp"
#include "core/contracts.hpp"

namespace windtunnel {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Brings the largest magnitude of a column into [1/2, 1), by a power of two, which rounds nothing: the squares of numbers beyond
/// 1e19, or below 1e-19, are not float32 numbers.
template <class Column>
void scale_to_one(Column column) {
  int exponent = 0;
  std::frexp(column.cwiseAbs().maxCoeff(), &exponent);
  column =
      column.unaryExpr([exponent](float value) { return std::ldexp(value, -exponent); }).eval();
}

/// Gram-Schmidt, column by column, twice over the earlier ones so that rounding leaves nothing of them (Giraud et al., Numer.
/// Math. 101, 2005). A column that lies in the span of the earlier ones becomes zero.
void orthogonalise(Eigen::MatrixXf& matrix) {
  constexpr float vanished = 1e-6F;  ///< of the column's norm, some ten units of float32 rounding
  for (Eigen::Index j = 0; j < matrix.cols(); ++j) {
    scale_to_one(matrix.col(j));
    const float norm = matrix.col(j).norm();
    for (int pass = 0; pass < 2 && j > 0; ++pass) {
      const Eigen::VectorXf shares = matrix.leftCols(j).transpose() * matrix.col(j);
      matrix.col(j) -= matrix.leftCols(j) * shares;
    }
    const float rest = matrix.col(j).norm();
    if (rest > vanished * norm)
      matrix.col(j) /= rest;
    else
      matrix.col(j).setZero();
  }
}

/// PowerSGD (Vogels, Karimireddy & Jaggi, NeurIPS 2019, arXiv:1905.13727, algorithm 1), without its all-reduces: one step of
/// subspace iteration on the n x k message M,
///   orthogonalise Q;  P = M Q;  orthogonalise P;  Q = M' P;  send P and Q;  the receiver takes P Q' for M.
/// P is n x r, Q is k x r, r <= min(n, k), both float32 whatever the message is in: 4 r (n + k) bytes. Q is kept for the next
/// message (warm start), so on messages that resemble each other the error falls towards that of the best approximation of rank r.
class PowerSgd final : public TensorCodec {
 public:
  PowerSgd(int rank, std::uint64_t seed) : rank_(rank), seed_(seed) {}

  void encode(const Tensor& tensor) override {
    const auto rows = static_cast<Eigen::Index>(tensor.rows);
    const auto columns = static_cast<Eigen::Index>(tensor.columns);
    const Eigen::Index rank = std::min({rank_, rows, columns});
    if (q_.size() == 0) {
      const auto count = static_cast<std::size_t>(columns * rank);
      const std::vector<float> numbers = normal_numbers(count, seed_);
      q_ = Eigen::Map<const Matrix>(numbers.data(), columns, rank);
    }
    WT_EXPECT(q_.rows() == columns && q_.cols() == rank);
    const Eigen::Map<const RowMajor> message(tensor.values.data(), rows, columns);
    orthogonalise(q_);
    p_.noalias() = message * q_;
    orthogonalise(p_);
    q_.noalias() = message.transpose() * p_;
  }

  Bytes size() const override {
    return Bytes{sizeof(float) * static_cast<double>(p_.size() + q_.size())};
  }

  const std::vector<float>& decode() override {
    decoded_.resize(static_cast<std::size_t>(p_.rows() * q_.rows()));
    Eigen::Map<RowMajor>(decoded_.data(), p_.rows(), q_.rows()).noalias() = p_ * q_.transpose();
    return decoded_;
  }

 private:
  using Matrix = Eigen::MatrixXf;
  Eigen::Index rank_;
  std::uint64_t seed_;
  Matrix p_, q_;
  std::vector<float> decoded_;
};

std::unique_ptr<TensorCodec> make(double rank, std::uint64_t seed) {
  return std::make_unique<PowerSgd>(static_cast<int>(rank), seed);
}

}  // namespace

MeasuredCodec measured_powersgd() {
  return {.name = "powersgd",
          .settings = {4, 16},
          .option_text = "Ranks of powersgd (default 4 and 16); may be repeated",
          .option_type = "R",
          .start = MeasuredCodec::Start::warm,
          .make = make};
}

}  // namespace windtunnel
