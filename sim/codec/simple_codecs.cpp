#include "codec/simple_codecs.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace windtunnel {

void Int8Codec::encode(const Tensor& tensor) {
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

const std::vector<float>& Int8Codec::decode() {
  decoded_.resize(levels_.size());
  for (std::size_t i = 0; i < levels_.size(); ++i)
    decoded_[i] = step_ * static_cast<float>(levels_[i]);
  return decoded_;
}

void TopkCodec::encode(const Tensor& tensor) {
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

Bytes TopkCodec::size() const {
  return (size_of(element_) + Bytes{sizeof(std::uint32_t)}) * static_cast<double>(kept_.size());
}

const std::vector<float>& TopkCodec::decode() {
  decoded_.assign(count_, 0);
  for (std::size_t i = 0; i < kept_.size(); ++i) decoded_[places_[i]] = kept_[i];
  return decoded_;
}

}  // namespace windtunnel
