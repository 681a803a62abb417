#include <algorithm>
#include <cmath>

#include "codec/measured_codec.hpp"

namespace windtunnel {
namespace {

/// One byte a value and one scale for the message: q = round(127 x / max |x|), 4 bytes of scale.
class Int8Codec final : public TensorCodec {
 public:
  void encode(const Tensor& tensor) override {
    constexpr double levels = 127;
    float largest = 0;
    for (const float value : tensor.values) largest = std::max(largest, std::abs(value));
    step_ = static_cast<float>(largest / levels);
    const double scale = largest > 0 ? levels / largest : 0;  // of tiny numbers no float32 number
    levels_.resize(tensor.size());
    for (std::size_t i = 0; i < levels_.size(); ++i)
      levels_[i] = static_cast<std::int8_t>(
          std::clamp(std::nearbyint(tensor.values[i] * scale), -levels, levels));
  }

  Bytes size() const override { return Bytes{sizeof(float) + static_cast<double>(levels_.size())}; }
  const std::vector<float>& decode() override {
    decoded_.resize(levels_.size());
    for (std::size_t i = 0; i < levels_.size(); ++i)
      decoded_[i] = step_ * static_cast<float>(levels_[i]);
    return decoded_;
  }

 private:
  float step_ = 0;
  std::vector<std::int8_t> levels_;
  std::vector<float> decoded_;
};

std::unique_ptr<TensorCodec> make(double /*setting*/, std::uint64_t /*seed*/) {
  return std::make_unique<Int8Codec>();
}

}  // namespace

MeasuredCodec measured_int8() { return {.name = "int8", .settings = {0}, .make = make}; }

}  // namespace windtunnel
