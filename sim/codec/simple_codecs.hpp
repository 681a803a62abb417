#pragma once

#include <cstdint>
#include <vector>

#include "codec/tensor_codec.hpp"

namespace windtunnel {

/// One byte a value and one scale for the message: q = round(127 x / max |x|), 4 bytes of scale.
class Int8Codec final : public TensorCodec {
 public:
  void encode(const Tensor& tensor) override;
  Bytes size() const override { return Bytes{sizeof(float) + static_cast<double>(levels_.size())}; }
  const std::vector<float>& decode() override;

 private:
  float step_ = 0;
  std::vector<std::int8_t> levels_;
  std::vector<float> decoded_;
};

/// The ceil(density * N) numbers of the largest magnitude, of equal ones the first, in the message's own type, each with its place
/// in 4 bytes. The rest is taken for zero.
class TopkCodec final : public TensorCodec {
 public:
  explicit TopkCodec(double density) : density_(density) {}
  void encode(const Tensor& tensor) override;
  Bytes size() const override;
  const std::vector<float>& decode() override;

 private:
  double density_;
  ElementType element_ = ElementType::float32;
  std::size_t count_ = 0;
  std::vector<std::uint32_t> order_, places_;
  std::vector<float> kept_, decoded_;
};

}  // namespace windtunnel
