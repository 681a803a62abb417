#pragma once

#include "cost/kernel_cost.hpp"
#include "plan/plan.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

/// One pass of a stage over one microbatch on one rank, or one optimizer step.
struct PassCost {
  Seconds compute{};      ///< kernels
  Seconds tensor_comm{};  ///< tensor collectives that nothing hides, in the node
  Seconds launch{};       ///< CPU time to launch it all
  Seconds duration{};     ///< of the span: with_launch_floor(compute + tensor_comm, launch)
  Seconds floor_share() const { return duration - compute - tensor_comm; }
};

/// Tensor-parallel collectives of one pass that cross nodes and are played as flows.
struct CrossNodeCollectives {
  int exposed = 0;          ///< all-reduces of one activation each, nothing beside them
  int overlappable = 0;     ///< all-reduces beside weight gradients
  Seconds hidden_behind{};  ///< how much of the pass may run beside the overlappable ones
};

/// What one stage costs on one kind of node.
struct StageCost {
  PassCost forward, backward;
  CrossNodeCollectives forward_cross, backward_cross;
  Seconds optimizer{};
  Bytes message{};              ///< one activation or gradient message, sent by one rank
  Bytes gradients{};            ///< one rank's gradients, as reduced
  Bytes embedding_gradients{};  ///< one rank's word embedding gradient (edge stages with tied
                                ///< embeddings)
  Bytes tensor_payload{};       ///< of one tensor all-reduce
  int forward_all_reduces = 0,
      backward_all_reduces = 0;  ///< per microbatch, recomputation included
};

/// Inputs of a stage's cost.
struct StageCostInputs {
  const Transformer* model = nullptr;
  const Plan* plan = nullptr;
  const SoftwareProfile* software = nullptr;
  const NodeType* node = nullptr;
  StageId stage;
  std::vector<int> tensor_gpus;  ///< the tensor group's GPUs in this node
};

/// Time of one microbatch through a stage, forward and backward (recomputation included), summed
/// over its layers before the launch floor is applied. Layer: products, memory-bound kernels, two
/// tensor all-reduces forward; twice the products, gradient accumulation, and two all-reduces
/// backward, of which each hides behind one weight gradient where the stack overlaps them: exposed
/// = max(0, AR - G/4), G = the layer's eight backward weight products (docs/model.md, model E).
/// First stage: embedding. Last stage: head and cross-entropy.
StageCost stage_cost(const StageCostInputs& inputs);

}  // namespace windtunnel
