#pragma once

#include <vector>

#include "scenario/scenario.hpp"

namespace windtunnel {

/// The values that are tried for each key of a plan: the `search` block of a scenario with its defaults filled in.
struct SearchSpace {
  int gpus = 0;          ///< that every plan uses
  ClusterShape cluster;  ///< their nodes
  std::vector<int> tensor, pipeline;
  std::vector<int> data;  ///< empty: whatever tensor and pipeline leave
  std::vector<int> micro_batch, virtual_pipeline, zero_stage;
  std::vector<SchedulePtr> schedule;  ///< empty: the file's; the default one for several chunks
  std::vector<Recompute> recompute;
  std::vector<bool> sequence_parallel;
};

/// Largest microbatch that is tried without being asked for: beyond it the vTrain sweep, the widest measured one, has no
/// fast plan.
inline constexpr int largest_default_micro_batch = 32;

/// The space around `base`. The GPUs are those that the file's own plan uses. Left out of the block:
///  - tensor: the divisors of a node's GPUs (of the smallest node's, where they differ);
///  - pipeline: the divisors of all GPUs, up to the model's layers;
///  - data: the rest of the GPUs;
///  - micro_batch: the powers of two up to 32;
///  - everything else: what the file says.
/// Values that are given twice are tried once. InputError when there are more than a million combinations.
SearchSpace search_space(const Scenario& base);

}  // namespace windtunnel
