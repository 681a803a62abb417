#include "lower/token_draws.hpp"

#include <algorithm>
#include <numeric>

#include "core/philox.hpp"
#include "cost/expert_exchange.hpp"

namespace windtunnel {

TokenDraws::TokenDraws(const BuildInputs& in) : seed_(in.tokens.seed) {
  const int ranks = in.plan->parallel.expert;
  if (in.tokens.draws == Tokens::Draws::mean || !in.model->moe || ranks == 1) return;
  drawn_ = expert_loads(*in.model->moe, ranks);
  if (drawn_.empty()) return;
  const double mean =
      std::accumulate(drawn_.begin(), drawn_.end(), 0.0) / static_cast<double>(drawn_.size());
  for (double& load : drawn_) load /= mean;
  // One expert on each rank: every draw has the same fullest rank.
  constexpr double rounding = 1e-9;
  const auto [least, most] = std::minmax_element(drawn_.begin(), drawn_.end());
  if (*most - *least <= rounding)
    drawn_.clear();
  else if (in.tokens.draws == Tokens::Draws::least)
    drawn_ = {*least};
}

double TokenDraws::fullness(Place place) const {
  constexpr int half = 32;
  constexpr std::uint32_t of_tokens = 0x70CE25;  // no kind of noise (NoiseKind) draws with it
  const PhiloxCounter bits =
      philox({place.group, place.layer, place.microbatch, of_tokens},
             {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> half)});
  return drawn_[bits[0] % drawn_.size()];
}

TokenDraws::OfChunk TokenDraws::of_chunk(const Plan& plan, const PlanDevice& device,
                                         int chunk) const {
  const ChunkPlace place{device.stage, chunk};
  const auto layers =
      static_cast<std::size_t>(plan.chunk_layers(place) + plan.mtp_layers_of(place));
  Place drawn;
  drawn.group = static_cast<std::uint32_t>(device.replica / replicas_of_experts(plan.parallel));
  OfChunk fullness_of_chunk(static_cast<std::size_t>(plan.microbatches),
                            std::vector<double>(layers));
  for (std::vector<double>& of_microbatch : fullness_of_chunk) {
    drawn.layer = static_cast<std::uint32_t>(plan.layers_before(place));
    for (double& of_layer : of_microbatch) {
      of_layer = fullness(drawn);
      ++drawn.layer;
    }
    ++drawn.microbatch;
  }
  return fullness_of_chunk;
}

}  // namespace windtunnel
