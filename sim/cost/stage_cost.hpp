#pragma once

#include <vector>

#include "cost/kernel_cost.hpp"
#include "operations/sharded_pass.hpp"
#include "plan/plan.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

/// One pass of a model chunk over one microbatch on one rank.
struct PassCost {
  Seconds compute{};      ///< kernels
  Seconds tensor_comm{};  ///< tensor collectives that nothing hides, in the node
  Seconds data_comm{};    ///< parameter gathers and gradient scatters that nothing hides (ZeRO 3)
  Seconds codec{};        ///< encoding and decoding for the collectives inside the pass
  Seconds launch{};       ///< CPU time to launch it all
  Seconds duration{};     ///< of the span: with_launch_floor(all of the above, launch)
  Seconds floor_share() const { return duration - compute - tensor_comm - data_comm - codec; }
};

/// Tensor-parallel collectives of one pass that cross nodes and are played as flows.
struct CrossNodeCollectives {
  int exposed = 0;          ///< all-reduces of one activation each, nothing beside them
  int overlappable = 0;     ///< all-reduces beside weight gradients
  Seconds hidden_behind{};  ///< how much of the pass may run beside the overlappable ones
};

/// Of the collectives, `payload` bytes each, if they had all NICs of the node to themselves: what the engine will play as flows.
Seconds uncontended_time(const CrossNodeCollectives& collectives, Bytes payload, int tensor_ways,
                         const NodeType& node);

/// What one model chunk of a stage costs.
struct ChunkCost {
  int layers = 0;
  PassCost forward, backward;
  PassCost input_gradient, weight_gradient;  ///< the backward pass where the schedule splits it
  CrossNodeCollectives forward_cross, backward_cross;
  int forward_all_reduces = 0, backward_all_reduces = 0;  ///< per microbatch, with recomputation
  ShardedTimes sharded_forward, sharded_backward;         ///< the same passes, taken apart (ZeRO 3)
  Bytes gradients{};                                      ///< one rank's, as reduced
};

/// What one stage costs on one kind of node.
struct StageCost {
  std::vector<ChunkCost> chunks;
  Seconds optimizer{};
  Bytes message{};     ///< one activation or gradient message, sent by one rank
  Bytes gradients{};   ///< one rank's gradients, as reduced
  Bytes parameters{};  ///< one rank's parameters, as gathered after a sharded step
  /// ZeRO 3, as sent: one layer's parameters as each pass gathers them, and its gradients as scattered.
  Bytes gathered_layer{}, scattered_layer{};
  Bytes gathered_edges{}, scattered_edges{};  ///< embedding and head, once a microbatch (ZeRO 3)
  Bytes
      embedding_gradients{};  ///< one rank's word embedding gradient, as synchronised (edge stages, tied)
  Bytes embedding_share{};  ///< the word embedding's share of `gradients`, where the stage holds it
  Bytes tensor_payload{};   ///< of one tensor all-reduce, as sent
};

/// The data-parallel group of a rank, as its gathers see it (ZeRO 3).
struct DataGroup {
  std::vector<int> gpus_in_node;  ///< its members in the fullest node
  int members = 1;
  int nodes = 1;
};

/// Inputs of a stage's cost.
struct StageCostInputs {
  const Transformer* model = nullptr;
  const Plan* plan = nullptr;
  const SoftwareProfile* software = nullptr;
  const NodeType* node = nullptr;
  const Fabric* fabric = nullptr;
  StageId stage;
  std::vector<int> tensor_gpus;  ///< the tensor group's GPUs in this node
  DataGroup data;
};

/// One activation or gradient message between stages, as one rank sends it: all of it, or its share where the stack scatters
/// messages over the tensor group (_communicate in megatron/p2p_communication.py, Megatron-LM v2.5, splits the tensor with
/// scatter_gather_tensors_in_pipeline, and gathers it on receipt with gather_split_1d_tensor).
Bytes stage_message_size(const Transformer& model, const Plan& plan,
                         const SoftwareProfile& software);

/// Time of one microbatch through a stage's chunks, forward and backward (recomputation included), summed over the layers
/// before the launch floor is applied.
///  - Layer: products, memory-bound kernels, two tensor all-reduces forward; twice the products, gradient accumulation, and two
///    all-reduces backward, of which each hides behind one weight gradient where the stack overlaps them:
///    exposed = max(0, AR - G/4), G = the layer's eight backward weight products (docs/model.md, model E). The all-reduces:
///    RowParallelLinear.forward and VocabParallelEmbedding.forward in megatron/mpu/layers.py, _CopyToModelParallelRegion.backward in
///    megatron/mpu/mappings.py, Megatron-LM v2.5; recomputed layers repeat theirs (_checkpointed_forward in
///    megatron/model/transformer.py, v2.5). The overlap: ColumnParallelLinearWithAsyncAllreduce.backward in megatron/mpu/layers.py at
///    16c9044 (September 2021).
///  - Sequence parallelism: each all-reduce is a reduce-scatter and an all-gather of the same total; backward, the gather is
///    exposed and the scatter hides: exposed = AR/2 + max(0, AR/2 - G/4) (Korthikanti et al. 2022, 4.2.2;
///    LinearWithGradAccumulationAndAsyncCommunication.backward in megatron/mpu/layers.py at 2514892, October 2022, where the gather
///    runs beside the input gradient: that this hides nothing is own).
///  - ZeRO 3: the operations of sharded_pass() with nobody else on the network. Gradients are scattered in their own type: DeepSpeed
///    0.16.5, partition_grads in runtime/zero/stage3.py, adds each microbatch's to the shard; PyTorch 2.1, _post_backward_hook in
///    distributed/fsdp/_runtime_utils.py, does so outside of no_sync(). Embedding and head stay until the backward pass ends (the
///    root unit of PyTorch FSDP, Zhao et al., VLDB 2023, section 4.2).
///  - First part of the model: embedding. Last part: head and cross-entropy.
///  - Compressed tensor collectives and ZeRO 3 gathers and scatters move fewer bytes; their codec work (encode_ring) is all exposed,
///    since it runs on the same multiprocessors as the kernels it would hide behind.
StageCost stage_cost(const StageCostInputs& inputs);

}  // namespace windtunnel
