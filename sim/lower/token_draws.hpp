#pragma once

#include <cstdint>
#include <vector>

#include "lower/program_builder.hpp"

namespace windtunnel {

/// Tokens of the fullest rank of a group over the mean, by group, layer and microbatch, if tokens are not spread
/// evenly over experts. Each draw is one of expert_loads(), chosen by the seed (Philox), so that no draw depends on another.
class TokenDraws {
 public:
  explicit TokenDraws(const BuildInputs& in);

  /// True if one layer or microbatch differs from another.
  bool vary() const { return !drawn_.empty(); }

  /// Whose tokens.
  struct Place {
    std::uint32_t group = 0;       ///< of ranks that exchange tokens, among those of the stage
    std::uint32_t layer = 0;       ///< of the model
    std::uint32_t microbatch = 0;  ///< of the group
  };
  /// Tokens of the fullest rank over their mean over all draws.
  double fullness(Place place) const;
  /// Draws for the layers of a chunk of this device, by microbatch and layer.
  using OfChunk = std::vector<std::vector<double>>;
  OfChunk of_chunk(const Plan& plan, const PlanDevice& device, int chunk) const;

 private:
  std::vector<double> drawn_;  ///< to choose from
  std::uint64_t seed_ = 0;
};

}  // namespace windtunnel
