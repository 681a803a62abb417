#pragma once

#include <vector>

#include "core/id.hpp"
#include "plan/schedule.hpp"

namespace windtunnel::schedules {

/// 1F1B, of which other schedules are variants: p - s - 1 warm-up forwards on stage s, then pairs, then the backwards left.
std::vector<Step> one_f_one_b_order(const OrderShape& shape, StageId stage);

/// Its passes depend on the last p microbatches.
ScheduleReach one_f_one_b_reach(const OrderShape& shape);

/// A rank of DualPipeV, and how its phases 0 and 1 are called: the chunk of each phase, and the number of its i-th microbatch.
struct DualPipeRank {
  int ranks = 1, rank = 0;
  int microbatches = 1;  ///< of each phase
  int chunk_of_first_phase = 0;
  int stride = 1;  ///< the i-th microbatch of chunk c has the number i stride + c (stride - 1)
};

/// The eight steps of DualPipeV.step.
std::vector<Step> dualpipe_order(const DualPipeRank& rank);

/// Up to 2 p + 1 microbatches of either phase are on their way through p ranks of DualPipeV.
ScheduleReach dualpipe_reach(const DualPipeRank& rank);

}  // namespace windtunnel::schedules
