#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/enum_names.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Most numbers of one: 512 MiB as float32, and some three times that while it is encoded and decoded.
inline constexpr std::size_t most_tensor_values = std::size_t{1} << 27;

/// In what a tensor's numbers are sent when they are not compressed.
enum class ElementType { float16, float32 };
Bytes size_of(ElementType type);

/// A message to compress: a matrix, row after row. float16 numbers are held as the float32 numbers they are.
struct Tensor {
  std::string source;  ///< "grad.npy", "synthetic gradient"
  ElementType element = ElementType::float32;
  std::size_t rows = 0, columns = 0;
  std::vector<float> values;

  std::size_t size() const { return values.size(); }
  Bytes bytes() const { return size_of(element) * static_cast<double>(size()); }
};

/// Errors of `values` relative to the tensor's. InputError if one of them has left the range of float32.
struct TensorError {
  double relative =
      0;  ///< Frobenius norm of the difference over that of the tensor; 0 where there is no difference
  double largest = 0;  ///< largest difference over the tensor's largest magnitude
};
/// InputError where one of the numbers that arrived for the tensor has left the range of float32.
void expect_finite(const Tensor& tensor, const std::vector<float>& arrived);
TensorError error_of(const Tensor& tensor, const std::vector<float>& values);

/// Square root of the mean square, and the largest magnitude.
struct TensorScale {
  double rms = 0, largest = 0;
};
TensorScale scale_of(const Tensor& tensor);

}  // namespace windtunnel
