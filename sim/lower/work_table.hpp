#pragma once

#include <vector>

#include "cost/stage_cost.hpp"
#include "plan/plan.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// What a stage's passes and the kernels of its end cost, in the order of ChunkRow and DeviceRow. The last pass of a chunk is
/// cut into `buckets` pieces.
std::vector<Work> work_table(const StageCost& cost, const Plan& plan, int buckets);

/// A table as long as OperationPlaces says, with the rows of all operations of a stage's passes in their places.
std::vector<Work> operation_rows(const StageOperations& chunks,
                                 const std::vector<Direction>& played);

/// The row of a pass that does this.
Work work_of(const PassTimes& times);
/// The row of an operation in this company, in a draw of that fullness; what it costs kernels is the collectives'.
Work work_of(const PassOperations& pass, const PlacedOperation& placed, double fullness = 1);
/// One of so many equal pieces.
Work piece_of(Work work, int pieces);

/// A row with one part.
Work work_of(Seconds duration, Part part);

}  // namespace windtunnel
