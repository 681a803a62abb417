#pragma once

#include <cstdint>

#include "plan/plan.hpp"

namespace windtunnel {

/// When the gradients of a stage are reduced over its replicas.
enum class GradientReduction {
  none,           ///< there is one replica; or inside the backward passes (ZeRO 3)
  per_iteration,  ///< whole gradients are kept, and reduced when the last pass has added its own
  /// Gradients are kept as shards (ZeRO 2), so every pass that makes them ends with their reduction. DeepSpeed 0.16.5:
  /// DeepSpeedEngine.allreduce_gradients (runtime/engine.py) waits for is_gradient_accumulation_boundary() below stage 2 only;
  /// independent_gradient_partition_epilogue (runtime/zero/stage_1_and_2.py) ends every backward pass, and with overlap_comm the
  /// device waits there for the reductions. Megatron-LM's FSDP with `optim_grads` also reduces on every microbatch
  /// (_make_param_hook, core/distributed/custom_fsdp/fully_sharded_data_parallel.py at 133d26c), but lets the last bucket run into
  /// the next pass.
  per_microbatch,
};
GradientReduction gradient_reduction(const Plan& plan);

/// Whether a plan reduces the gradients of one chunk at a time: beside the backward pass, or on every microbatch.
bool reduces_by_chunk(const Plan& plan);
/// In how many pieces a pass of a stage reduces its chunk's gradients: beside it one for each Plan::layers_of_bucket (at least one), else
/// one behind it.
int gradient_buckets(const Plan& plan, StageId stage);

}  // namespace windtunnel
