#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "codec/tensor.hpp"

namespace windtunnel {

/// Made-up tensors for when no real one is at hand. They show how codecs behave on data of a kind; what a codec does to a
/// model's own tensors only those say.
enum class SyntheticKind {
  /// M = sum_i s_i u_i v_i' + noise, s_i = 1/i for i = 1..32, u_i and v_i random unit vectors, and normal noise with 30 % of the
  /// signal's norm, scaled to a root mean square of 1e-3. Gradients are close to low rank (Vogels et al. 2019,
  /// arXiv:1905.13727, section 4 and figure 3); exponent, rank and noise are assumed.
  gradient,
  /// Student's t numbers with 4 degrees of freedom (assumed), and 1 in 1000 columns, but at least one, 20 times as large: a few
  /// feature dimensions of transformers are (Dettmers et al. 2022, arXiv:2208.07339: about 0.1 %, up to 20 times).
  activation,
};

/// The same shape and seed give the same numbers.
Tensor synthetic_tensor(SyntheticKind kind, std::size_t rows, std::size_t columns,
                        std::uint64_t seed);

/// rows * columns standard normal numbers.
std::vector<float> normal_numbers(std::size_t count, std::uint64_t seed);

}  // namespace windtunnel
