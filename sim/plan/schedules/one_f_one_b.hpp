#pragma once

#include <vector>

#include "core/id.hpp"
#include "plan/schedule.hpp"

namespace windtunnel::schedules {

/// 1F1B, of which other schedules are variants: p - s - 1 warm-up forwards on stage s, then pairs, then the backwards left.
std::vector<Step> one_f_one_b_order(const OrderShape& shape, StageId stage);

/// Its passes depend on the last p microbatches.
ScheduleReach one_f_one_b_reach(const OrderShape& shape);

}  // namespace windtunnel::schedules
