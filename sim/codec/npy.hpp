#pragma once

#include <filesystem>

#include "codec/tensor.hpp"

namespace windtunnel {

/// Reads an array in NumPy's .npy format, versions 1 to 3 (numpy.lib.format): float16, float32 or float64, little or big
/// endian, C or Fortran order. float64 numbers are rounded to float32, in which such tensors are sent, and counted as
/// that. Of more than two axes all but the last become rows; of one axis the array is one row. Refused, with InputError: other
/// types, empty arrays, numbers that are not finite, files that are longer or shorter than their shape says.
/// EnvironmentError when the file cannot be read.
Tensor read_npy(const std::filesystem::path& file);

}  // namespace windtunnel
