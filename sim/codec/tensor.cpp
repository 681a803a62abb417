#include "codec/tensor.hpp"

#include <algorithm>
#include <cmath>

#include "core/contracts.hpp"
#include "core/problem.hpp"
#include "report/number_text.hpp"

namespace windtunnel {

Bytes size_of(ElementType type) { return type == ElementType::float16 ? 2_B : 4_B; }

void expect_finite(const Tensor& tensor, const std::vector<float>& arrived) {
  if (std::all_of(arrived.begin(), arrived.end(), [](float value) { return std::isfinite(value); }))
    return;
  throw InputError(
      {{{},
        {},
        tensor.source + ": numbers up to " + significant_text(scale_of(tensor).largest, 3) +
            " leave the range of float32 on their way through a codec",
        "scale the tensor down"}});
}

TensorError error_of(const Tensor& tensor, const std::vector<float>& values) {
  WT_EXPECT(values.size() == tensor.size());
  expect_finite(tensor, values);
  double squares = 0, difference_squares = 0, largest = 0, largest_difference = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = tensor.values[i];
    const double difference = value - values[i];
    squares += value * value;
    difference_squares += difference * difference;
    largest = std::max(largest, std::abs(value));
    largest_difference = std::max(largest_difference, std::abs(difference));
  }
  if (largest_difference == 0) return {};
  return {std::sqrt(difference_squares / squares), largest_difference / largest};
}

TensorScale scale_of(const Tensor& tensor) {
  TensorScale scale;
  for (const float value : tensor.values) {
    scale.rms += double{value} * value;
    scale.largest = std::max(scale.largest, std::abs(double{value}));
  }
  if (tensor.size() > 0) scale.rms = std::sqrt(scale.rms / static_cast<double>(tensor.size()));
  return scale;
}

}  // namespace windtunnel
