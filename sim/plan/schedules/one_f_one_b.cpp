#include <algorithm>

#include "plan/schedules/variants.hpp"

namespace windtunnel::schedules {

std::vector<Step> one_f_one_b_order(const OrderShape& shape, StageId stage) {
  const int s = static_cast<int>(stage.index());
  const auto m = static_cast<std::uint32_t>(shape.microbatches);
  const std::uint32_t warm_up = std::min(static_cast<std::uint32_t>(shape.stages - s - 1), m);
  std::vector<Step> steps;
  steps.reserve(2 * std::size_t{m});
  for (std::uint32_t i = 0; i < warm_up; ++i) steps.push_back({Phase::forward, 0, i});
  for (std::uint32_t i = warm_up; i < m; ++i) {
    steps.push_back({Phase::forward, 0, i});
    steps.push_back({Phase::backward, 0, i - warm_up});
  }
  for (std::uint32_t i = m - warm_up; i < m; ++i) steps.push_back({Phase::backward, 0, i});
  return steps;
}

ScheduleReach one_f_one_b_reach(const OrderShape& shape) {
  return {.step = 1, .lag = 2 * shape.stages};
}

/// Narayanan et al. 2021, arXiv:2104.04473, 2.2.1; forward_backward_pipelining_without_interleaving in megatron/schedules.py,
/// Megatron-LM v2.5; TrainSchedule in deepspeed/runtime/pipe/schedule.py, DeepSpeed 0.3.16.
Schedule one_f_one_b() {
  return {.name = "1f1b",
          .order = one_f_one_b_order,
          .is_default = true,
          .reach = one_f_one_b_reach,
          .idles_only_at_the_ends = true,
          .megatron_arguments = std::vector<std::string>{},
          .is_deepspeeds = true};
}

}  // namespace windtunnel::schedules
