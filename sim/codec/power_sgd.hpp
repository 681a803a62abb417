#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "codec/tensor_codec.hpp"

namespace windtunnel {

/// PowerSGD (Vogels, Karimireddy & Jaggi, NeurIPS 2019, arXiv:1905.13727, algorithm 1), without its all-reduces: one step of
/// subspace iteration on the n x k message M,
///   orthogonalise Q;  P = M Q;  orthogonalise P;  Q = M' P;  send P and Q;  the receiver takes P Q' for M.
/// P is n x r, Q is k x r, r <= min(n, k), both float32 whatever the message is in: 4 r (n + k) bytes. Q is kept for the next
/// message (warm start), so on messages that resemble each other the error falls towards that of the best approximation of rank r.
class PowerSgd final : public TensorCodec {
 public:
  PowerSgd(int rank, std::uint64_t seed) : rank_(rank), seed_(seed) {}

  void encode(const Tensor& tensor) override;
  Bytes size() const override;
  const std::vector<float>& decode() override;

 private:
  using Matrix = Eigen::MatrixXf;
  Eigen::Index rank_;
  std::uint64_t seed_;
  Matrix p_, q_;
  std::vector<float> decoded_;
};

}  // namespace windtunnel
