#include "plan/schedule.hpp"

namespace windtunnel::schedules {
namespace {

std::vector<Step> order(const OrderShape& shape, StageId) {
  const auto m = static_cast<std::uint32_t>(shape.microbatches);
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < m; ++i) steps.push_back({Phase::forward, 0, i});
  for (std::uint32_t i = m; i-- > 0;) steps.push_back({Phase::backward, 0, i});
  return steps;
}

}  // namespace

/// All forwards, then all backwards in reverse (Huang et al. 2019, arXiv:1811.06965).
Schedule gpipe() { return {.name = "gpipe", .order = order, .idles_only_at_the_ends = true}; }

}  // namespace windtunnel::schedules
