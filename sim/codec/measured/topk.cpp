#include <algorithm>
#include <cmath>
#include <numeric>

#include "codec/measured_codec.hpp"

namespace windtunnel {
namespace {

/// The ceil(density * N) numbers of the largest magnitude, of equal ones the first, in the message's own type, each with its place
/// in 4 bytes. The rest is taken for zero.
class TopkCodec final : public TensorCodec {
 public:
  explicit TopkCodec(double density) : density_(density) {}
  void encode(const Tensor& tensor) override {
    element_ = tensor.element;
    count_ = tensor.size();
    const auto kept = static_cast<std::size_t>(std::ceil(density_ * static_cast<double>(count_)));
    order_.resize(count_);
    std::iota(order_.begin(), order_.end(), 0U);
    const auto larger = [&](std::uint32_t a, std::uint32_t b) {
      const float x = std::abs(tensor.values[a]), y = std::abs(tensor.values[b]);
      return x != y ? x > y : a < b;
    };
    const auto end = order_.begin() + static_cast<std::ptrdiff_t>(std::min(kept, count_));
    if (end != order_.end()) std::nth_element(order_.begin(), end, order_.end(), larger);
    places_.assign(order_.begin(), end);
    kept_.clear();
    for (const std::uint32_t place : places_) kept_.push_back(tensor.values[place]);
  }

  Bytes size() const override {
    return (size_of(element_) + Bytes{sizeof(std::uint32_t)}) * static_cast<double>(kept_.size());
  }

  const std::vector<float>& decode() override {
    decoded_.assign(count_, 0);
    for (std::size_t i = 0; i < kept_.size(); ++i) decoded_[places_[i]] = kept_[i];
    return decoded_;
  }

 private:
  double density_;
  ElementType element_ = ElementType::float32;
  std::size_t count_ = 0;
  std::vector<std::uint32_t> order_, places_;
  std::vector<float> kept_, decoded_;
};

std::unique_ptr<TensorCodec> make(double density, std::uint64_t /*seed*/) {
  return std::make_unique<TopkCodec>(density);
}

void add_rates(const MeasuredRates& rates, JsonValue& codecs) {
  codecs.set("selection", JsonValue(rates.encode));
}

}  // namespace

MeasuredCodec measured_topk() {
  return {.name = "topk",
          .settings = {0.01},
          .option_text = "Share of the values that topk sends (default 0.01); may be repeated",
          .option_type = "SHARE",
          .make = make,
          .add_rates = add_rates};
}

}  // namespace windtunnel
