#pragma once

#include <cstdint>
#include <vector>

#include "codec/tensor_codec.hpp"

namespace windtunnel {

/// A lossless codec of the four stages of MPC (Yang, Mukka, Hesaaraki & Burtscher, "MPC: a massively parallel compression
/// algorithm for scientific data", IEEE CLUSTER 2015, doi 10.1109/CLUSTER.2015.59), on the CPU, in chunks of 1024 numbers taken
/// as unsigned words of w = 32 bits (16 for float16):
///   LNV1  each word less the one before it in its chunk, modulo 2^w
///   BIT   each w words transposed: word j of the result holds bit w-1-j of each
///   LNV1  again, over the transposed words
///   ZE    zero words left out: one bit a word says which, then the others
/// What belongs to the authors' GPU code and not to the stages (how chunks are found again, the dimension as a parameter) is
/// left out; its ratio can differ a little from theirs. A last chunk that is not full is filled up with its last word.
class MpcCodec final : public TensorCodec {
 public:
  void encode(const Tensor& tensor) override;
  Bytes size() const override { return Bytes{static_cast<double>(bytes_.size())}; }
  const std::vector<float>& decode() override;

 private:
  ElementType element_ = ElementType::float32;
  std::size_t count_ = 0;
  std::vector<std::uint8_t> bytes_;
  std::vector<float> decoded_;
};

}  // namespace windtunnel
