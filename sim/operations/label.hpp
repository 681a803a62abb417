#pragma once

#include <cstdint>

#include "core/enum_names.hpp"

namespace windtunnel {

/// The queues of a device, like the streams of a GPU. Each runs its ops in order; different streams run at the same time.
enum class Stream : std::uint8_t { compute, tensor, pipeline, data, codec };
inline constexpr int num_streams = enumerators<Stream>().size();
/// "compute", "comm:tensor", "comm:pipeline", "comm:data", "codec"
const char* name_of(Stream stream);

/// Classes of traffic, which are counted and compressed separately.
enum class Traffic : std::uint8_t {
  pipeline_forward,
  pipeline_backward,
  data_gradients,
  embedding_sync,
  tensor_activations,
  zero_gather,
  zero_scatter,  ///< gradients in backward passes (ZeRO 3), with the codec of data_gradients
  expert_dispatch,
  expert_combine,
  context,  ///< keys and values, or heads, within a context group
};
inline constexpr int num_traffic_classes = enumerators<Traffic>().size();
/// True if documents list the class even without such traffic.
inline bool is_always_written(Traffic traffic) {
  return traffic != Traffic::context && traffic != Traffic::expert_dispatch &&
         traffic != Traffic::expert_combine && traffic != Traffic::zero_scatter;
}

/// The breakdown line that a part of a computing span is booked to. A span's parts add up to its
/// duration.
enum class Part : std::uint8_t {
  compute,
  tensor_comm,
  codec,
  optimizer,
  other,
  data_comm,
  expert_comm,
  context_comm,
};
inline constexpr int num_parts = enumerators<Part>().size();

/// Names of operations. A label's row of the table (row_of) has its text and the classes under which it is counted.
enum class Label : std::uint8_t {
  whole_pass,    ///< not an operation: a whole pass that is simulated as one op
  batch_read,    ///< the host reads a microbatch; then the pass begins
  launch_floor,  ///< at the end of a pass: what its launches take longer than it
  embedding,
  attention,
  feed_forward,
  head,
  recomputed_attention,
  recomputed_feed_forward,
  attention_core,      ///< scores, softmax and context, where they are recomputed
  context_attention,   ///< the same, while keys and values of the rest of the sequence arrive
  weight_gradients,    ///< overlapped with a tensor collective, or in a separate pass
  input_gradients,     ///< overlapped with a tensor collective
  reduce_activation,   ///< tensor all-reduce
  gather_activation,   ///< tensor all-gather (sequence parallelism)
  scatter_activation,  ///< tensor reduce-scatter
  gather_keys,         ///< keys and values of a context group
  scatter_keys,        ///< their gradients
  exchange_heads,      ///< a context group's tokens for heads, or back
  gather_message,      ///< a scattered stage message, gathered on receipt
  activation_codec,
  sharding_codec,
  host_gather,         ///< work of the host around gathers that it drives itself
  gather_edges,        ///< the parameters of embedding and head
  gather_layer,        ///< the parameters of one layer
  scatter_layer,       ///< the gradients of one layer
  scatter_edges,       ///< the gradients of embedding and head
  scatter_experts,     ///< the gradients of one layer's experts
  reduce_layer,        ///< a rank's shard of a layer's gradients, over the sharding groups
  reduce_edges,        ///< the same for embedding and head
  activation_message,  ///< a chunk's output, sent to the next chunk
  gradient_message,    ///< the gradient of a chunk's input, sent to the previous chunk
  reduce_gradients,    ///< all gradients of a stage, when its passes have ended
  scatter_gradients,   ///< the same where each replica keeps a shard
  reduce_shards,       ///< and adds it up with that of the other sharding groups
  synchronise_embedding,
  optimizer_step,
  gather_parameters,     ///< after an optimizer step on shards
  broadcast_parameters,  ///< the same where each tensor has one owner
  iteration_overhead,
  routing,         ///< norm, router, choice of experts, and sorting of tokens by expert
  shared_experts,  ///< experts that every token takes
  experts,
  merging,  ///< puts tokens back in order, weighs and adds them up
  recomputed_routing,
  recomputed_shared_experts,
  recomputed_experts,
  recomputed_merging,
  dispatch_tokens,  ///< sends tokens to their experts; backward: the gradients of the experts' outputs
  combine_tokens,  ///< sends the experts' outputs back; backward: the gradients of their inputs
  gather_tokens,   ///< among the ranks that hold the pieces of an expert
  scatter_tokens,
  reduce_expert_gradients,  ///< at the end, among the ranks that hold the same experts
  scatter_expert_gradients,
  gather_expert_parameters,
  reduce_over_axis,   ///< an all-reduce among the ranks along Operation::axis
  activation_copies,  ///< what kernels wait for copies of activations to the host, or back
};

/// Kind of an operation: kernels on one rank, or a collective or message.
enum class OperationKind : std::uint8_t {
  kernel,
  all_reduce,
  all_gather,
  broadcast,
  reduce_scatter,
  all_to_all,
  message,
};
constexpr bool is_collective(OperationKind kind) {
  return kind != OperationKind::kernel && kind != OperationKind::message;
}

/// The group of ranks that takes part in a collective.
enum class GroupKind : std::uint8_t {
  tensor,  ///< the tensor group
  axis,  ///< the ranks that differ on one axis of replicas alone (Operation::axis), as those that share a sequence
  sharding,       ///< the replicas that shard states among them
  copies,         ///< the ranks that hold the same shard, one in each sharding group
  replicas,       ///< all replicas of a stage
  experts,        ///< the ranks that exchange tokens
  expert_tensor,  ///< the ranks that hold the pieces of an expert
  expert_data,    ///< the ranks that hold the same experts
  embedding,  ///< the stages that hold a copy of the word embedding, in all replicas if the reduction is fused
};
inline constexpr int num_group_kinds = enumerators<GroupKind>().size();

/// Properties of all operations with the same label.
struct LabelRow {
  const char* text;  ///< in traces: "attention"
  OperationKind kind;
  Part part;        ///< the line of the breakdown that computing it, or waiting for it, counts as
  Traffic traffic;  ///< only of collectives and messages
  GroupKind group = GroupKind::sharding;  ///< only of collectives
};
const LabelRow& row_of(Label label);
inline GroupKind group_of(Label label) { return row_of(label).group; }

/// True if it is a forward operation that runs again in the backward pass.
constexpr bool is_recomputed(Label label) {
  return label == Label::recomputed_attention || label == Label::recomputed_feed_forward ||
         label == Label::attention_core ||
         (label >= Label::recomputed_routing && label <= Label::recomputed_merging);
}
/// True if its parameters belong to experts, which have process groups of their own.
constexpr bool is_of_experts(Label label) { return label == Label::experts; }
/// True if tensor parallelism splits it; experts and the operations around them are split differently.
constexpr bool is_cut_by_tensor(Label label) {
  return label != Label::routing && label != Label::experts && label != Label::merging;
}
/// True if the GPU waits for the host and computes nothing of the model.
constexpr bool is_of_host(Label label) {
  return label == Label::batch_read || label == Label::launch_floor;
}
/// True if ranks exchange tokens of experts.
constexpr bool is_exchange(Label label) {
  return label == Label::dispatch_tokens || label == Label::combine_tokens;
}
inline bool is_of_tensor_group(Label label) { return group_of(label) == GroupKind::tensor; }

}  // namespace windtunnel
