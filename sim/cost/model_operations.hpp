#pragma once

#include "cost/adapters.hpp"
#include "cost/stage_cost.hpp"
#include "passes/pass.hpp"

namespace windtunnel {

/// Operations of one chunk of the model on one rank, before anything is split: kernels with their times, launches and FLOPs, and the memory
/// they hold.
///  - Layer: attention and feed-forward network; backward twice the products, and gradient accumulation with the weight gradients.
///  - First chunk of the model: embedding. Last chunk: head and cross-entropy.
///  - Launches: those of a layer with its first kernel; embedding and head take shares of a layer's. Of a split backward pass each
///    half has half of them.
ChunkOperations model_operations(const StageCostInputs& inputs, const ChunkRole& chunk);

/// Flash attention's core, backward.
Operation flash_core_backward(const StageCostInputs& inputs);
/// The attention core, forward.
Operation attention_core(const StageCostInputs& inputs);
/// Parts of a layer's operations that run again where the plan recomputes modules, in the order of the forward pass.
std::vector<RecomputedPart> recomputed_parts(const StageCostInputs& in);

/// The kernels of routed experts, forward, as far as a stack runs them again that recomputes operations. The model has experts.
Operation experts_again(const StageCostInputs& inputs);
/// A half of a layer, forward, as far as a stack runs it again that recomputes operations.
Operation half_again(const StageCostInputs& inputs, LayerHalf half);

}  // namespace windtunnel
