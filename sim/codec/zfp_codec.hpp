#pragma once

#include <cstdint>
#include <vector>

#include "codec/tensor_codec.hpp"

namespace windtunnel {

/// zfp with a fixed number of bits a value (Lindstrom, IEEE TVCG 20(12), 2014, doi 10.1109/TVCG.2014.2346458), on the message
/// as a flat list of float32 numbers, as a communication library sees it: blocks of 4 numbers of 4 * rate bits. Rates are
/// multiples of 1/4 bit, from 2.25 (9 bits of exponent a block); others become the next.
class ZfpCodec final : public TensorCodec {
 public:
  explicit ZfpCodec(double rate) : rate_(rate) {}

  void encode(const Tensor& tensor) override;
  Bytes size() const override { return Bytes{static_cast<double>(size_)}; }
  const std::vector<float>& decode() override;

 private:
  double rate_;
  std::size_t count_ = 0, size_ = 0;
  std::vector<std::uint64_t> buffer_;
  std::vector<float> decoded_;
};

}  // namespace windtunnel
