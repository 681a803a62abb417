#include "plan/schedules/variants.hpp"

namespace windtunnel::schedules {
namespace {

std::vector<Step> order(const OrderShape& shape, StageId stage) {
  return dualpipe_order({.ranks = shape.stages,
                         .rank = static_cast<int>(stage.index()),
                         .microbatches = shape.microbatches});
}

ScheduleReach reach(const OrderShape& shape) { return dualpipe_reach({.ranks = shape.stages}); }

}  // namespace

/// DualPipeV: DualPipe folded in the middle, on half as many devices with one copy of the parameters. Chunks go up and down the stages in
/// a V; 2 p + 1 chunks in flight on every stage. The order is that of DualPipeV.step in dualpipe/dualpipev.py,
/// github.com/deepseek-ai/DualPipe at 3da1bbe (after the "cut-in-half" schedule of Sea AI Lab).
Schedule dualpipe_v() {
  return {.name = "dualpipe_v",
          .order = order,
          .splits_backward = true,
          .chunks = ChunksPerDevice::two,
          .chunk_path = ChunkPath::v,
          .reach = reach,
          .sends = ScheduleSends::only_eager,
          .fewest_microbatches_of_stage = 2,
          .overlaps_passes = true};
}

}  // namespace windtunnel::schedules
