#include <algorithm>

#include "plan/schedules/variants.hpp"

namespace windtunnel::schedules {
namespace {

/// 1F1B's order with each weight gradient s backward passes after its own on stage s, the rest at the end.
std::vector<Step> order(const OrderShape& shape, StageId stage) {
  const auto m = static_cast<std::uint32_t>(shape.microbatches);
  const auto delay = static_cast<std::uint32_t>(stage.index());
  std::vector<Step> steps;
  for (const Step& step : one_f_one_b_order(shape, stage)) {
    steps.push_back(step);
    if (step.phase == Phase::backward && step.microbatch >= delay)
      steps.push_back({Phase::weight_gradient, 0, step.microbatch - delay});
  }
  for (std::uint32_t i = m - std::min(m, delay); i < m; ++i)
    steps.push_back({Phase::weight_gradient, 0, i});
  return steps;
}

}  // namespace

/// 1F1B with the weight gradient apart, s microbatches late on stage s, so that it fills the drain (Qi et al. 2024,
/// arXiv:2401.10241, 2.1). At most p microbatches in flight on every stage, 1F1B's peak.
Schedule zero_bubble_h1() {
  return {.name = "zero_bubble_h1",
          .order = order,
          .splits_backward = true,
          .reach = one_f_one_b_reach,
          .sends = ScheduleSends::eager};
}

}  // namespace windtunnel::schedules
