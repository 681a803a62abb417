#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// One pass of one microbatch through one model chunk of a stage.
struct Step {
  Phase phase = Phase::forward;  ///< forward, backward, or weight_gradient
  std::uint16_t chunk = 0;
  std::uint32_t microbatch = 0;
  bool operator==(const Step&) const = default;
};

/// What a schedule is asked for.
struct OrderShape {
  int stages = 1;
  int microbatches = 1;
  int chunks = 1;  ///< model chunks a device holds (interleaved schedules)
};

/// The order in which `stage` runs its passes; a schedule is nothing else. O(1) a step.
///
///  - gpipe: all forwards, then all backwards in reverse (Huang et al. 2019, arXiv:1811.06965).
///  - one_f_one_b: p - s - 1 warm-up forwards on stage s, then pairs, then the backwards left (Narayanan et al. 2021,
///    arXiv:2104.04473, 2.2.1).
///  - interleaved_1f1b: the same over v chunks in groups of p microbatches; 2 (p - s - 1) + (v - 1) p warm-up forwards
///    (ibid. 2.2.2; Megatron-LM's order). Needs microbatches in multiples of stages.
///  - zero_bubble_h1: 1F1B with the weight gradient apart, s microbatches late on stage s, so that it fills the drain
///    (Qi et al. 2024, arXiv:2401.10241, 2.1). As many microbatches in flight as 1F1B.
std::vector<Step> schedule_order(Schedule schedule, const OrderShape& shape, StageId stage);

}  // namespace windtunnel
