#pragma once

#include <vector>

#include "cost/stage_cost.hpp"
#include "plan/plan.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// What a stage's passes, its optimizer and its overhead cost, in the order of ChunkRow and DeviceRow. The last pass of a chunk is
/// cut into `buckets` pieces.
std::vector<Work> work_table(const StageCost& cost, const Plan& plan,
                             const SoftwareProfile& software, int buckets);

/// The operations of a sharded pass, in the order of ShardedRow.
std::vector<Work> sharded_work_table(const ChunkCost& cost);

/// A row with one part.
Work work_of(Seconds duration, Part part);

}  // namespace windtunnel
