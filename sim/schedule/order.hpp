#pragma once

#include <vector>

#include "plan/plan.hpp"
#include "plan/step.hpp"

namespace windtunnel {

/// The order in which `stage` runs its passes; a schedule is nothing else. O(1) a step.
///
///  - gpipe: all forwards, then all backwards in reverse (Huang et al. 2019, arXiv:1811.06965).
///  - one_f_one_b: p - s - 1 warm-up forwards on stage s, then pairs, then the backwards left (Narayanan et al. 2021,
///    arXiv:2104.04473, 2.2.1; forward_backward_pipelining_without_interleaving in megatron/schedules.py, Megatron-LM v2.5).
///  - interleaved_1f1b: the same over v chunks in groups of p microbatches; 2 (p - s - 1) + (v - 1) p warm-up forwards
///    (ibid. 2.2.2; get_model_chunk_id and num_warmup_microbatches of forward_backward_pipelining_with_interleaving, in the same
///    file). Needs microbatches in multiples of stages; p of them run all forwards first (its all_warmup_microbatches).
///  - zero_bubble_h1: 1F1B with the weight gradient apart, s microbatches late on stage s, so that it fills the drain
///    (Qi et al. 2024, arXiv:2401.10241, 2.1). At most p microbatches in flight on every stage, 1F1B's peak.
std::vector<Step> schedule_order(Schedule schedule, const OrderShape& shape, StageId stage);

/// The same for every stage of a named schedule.
ScheduleOrders schedule_orders(Schedule schedule, const OrderShape& shape);

/// The order of a plan's stage: of its named schedule, or as the user wrote it.
std::vector<Step> schedule_order(const Plan& plan, StageId stage);

/// Whether weight gradients are passes of their own, apart from the backward passes.
bool splits_backward(const Plan& plan);

}  // namespace windtunnel
