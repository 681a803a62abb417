#pragma once

#include <optional>
#include <vector>

#include "core/object_reader.hpp"
#include "plan/plan.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// What a plan that is recommended must leave free on every GPU, beside what it is predicted to need.
struct MemoryMargin {
  /// Half of the 90 % interval of the memory account on A100, ±5 %: docs/memory.md, section 4.
  static constexpr double default_share = 0.05;

  double share = default_share;  ///< of what is needed
  Bytes amount{};                ///< on top of the share
};

/// Who decides which GPU plays a rank of a plan that is searched.
enum class PlacementChoice {
  megatron,  ///< rank order tensor, data, pipeline
  search,    ///< the search itself
};

/// The `search` block of a scenario: the values that `rank` tries for each key of a plan. A list that is empty was not
/// given.
struct SearchBlock {
  std::vector<int> tensor, pipeline, data, micro_batch, virtual_pipeline, zero_stage;
  std::vector<SchedulePtr> schedule;
  std::vector<Recompute> recompute;
  std::vector<bool> sequence_parallel;
  MemoryMargin memory_margin;
  PlacementChoice placement = PlacementChoice::megatron;
};

/// Reads the `search` block. `memory_margin` is a share, "5 %", or a size, "2 GiB".
SearchBlock read_search(ObjectReader reader);

}  // namespace windtunnel
