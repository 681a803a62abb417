#pragma once

#include <cstdint>

namespace windtunnel {

/// What a device does at the same time, as a GPU has streams. Each stream plays its ops in order.
enum class Stream : std::uint8_t { compute, tensor, pipeline, data, codec };
inline constexpr int num_streams = 5;
/// "compute", "comm:tensor", "comm:pipeline", "comm:data", "codec"
const char* name_of(Stream stream);

/// Kinds of traffic that are counted and compressed each on their own.
enum class Traffic : std::uint8_t {
  pipeline_forward,
  pipeline_backward,
  data_gradients,
  embedding_sync,
  tensor_activations,
  zero_gather,
  expert_dispatch,
  expert_combine,
  context,  ///< keys and values, or heads, within a context group
};
inline constexpr int num_traffic_classes = 9;
const char* name_of(Traffic traffic);
/// Whether files have the class where there is no such traffic too.
inline bool is_always_written(Traffic traffic) {
  return traffic != Traffic::context && traffic != Traffic::expert_dispatch &&
         traffic != Traffic::expert_combine;
}

/// Where the time of a computing span goes: its line in the breakdown. A span's parts add up to its
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
inline constexpr int num_parts = 8;

/// What an operation is, of a pass or of the end of an iteration. Its row of the table (row_of) says what it is called and counted as.
enum class Label : std::uint8_t {
  whole_pass,    ///< not an operation: a pass that is played as one
  launch_floor,  ///< kernels wait to be launched
  embedding,
  attention,
  feed_forward,
  head,
  recomputed_attention,
  recomputed_feed_forward,
  attention_core,     ///< scores, softmax and context, computed again
  context_attention,  ///< the same, while keys and values of the other parts of the sequence arrive
  weight_gradients,   ///< beside a tensor collective, or in a pass of their own
  reduce_activation,  ///< tensor all-reduce
  gather_activation,  ///< tensor all-gather (sequence parallelism)
  scatter_activation,  ///< tensor reduce-scatter
  gather_keys,         ///< keys and values of a context group
  scatter_keys,        ///< their gradients
  exchange_heads,      ///< a context group's tokens for heads, or back
  gather_message,      ///< a scattered stage message, gathered on receipt
  activation_codec,
  sharding_codec,
  host_gather,    ///< what the host does around gathers that it drives itself
  gather_edges,   ///< the parameters of embedding and head
  gather_layer,   ///< the parameters of one layer
  scatter_layer,  ///< the gradients of one layer
  scatter_edges,  ///< the gradients of embedding and head
  reduce_layer,  ///< a rank's shard of a layer's gradients, among the groups that hold copies of it
  reduce_edges,  ///< the same of embedding and head
  activation_message,  ///< a chunk's output, to the chunk behind it
  gradient_message,    ///< the gradient of a chunk's input, to the chunk before it
  reduce_gradients,    ///< all of a stage's, when its passes have ended
  scatter_gradients,   ///< the same where each replica keeps a shard
  synchronise_embedding,
  optimizer_step,
  gather_parameters,  ///< of a step that has updated shards
  iteration_overhead,
  routing,         ///< norm, router, choice of experts, and tokens put in their order
  shared_experts,  ///< what every token takes beside its experts
  experts,
  merging,  ///< tokens put back, weighed and added up
  recomputed_routing,
  recomputed_shared_experts,
  recomputed_experts,
  recomputed_merging,
  dispatch_tokens,  ///< tokens to their experts; backward the gradients of what these gave
  combine_tokens,  ///< what experts give, back to the tokens' ranks; backward gradients of their inputs
  gather_tokens,  ///< among the ranks that cut an expert
  scatter_tokens,
  reduce_expert_gradients,  ///< at the end, among the ranks that hold the same experts
  scatter_expert_gradients,
  gather_expert_parameters,
};

/// How many ranks an operation takes, and what they do.
enum class OperationKind : std::uint8_t {
  kernel,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  message,
};
constexpr bool is_collective(OperationKind kind) {
  return kind != OperationKind::kernel && kind != OperationKind::message;
}

/// What all operations of a label have in common.
struct LabelRow {
  const char* text;  ///< in traces: "attention"
  OperationKind kind;
  Part part;        ///< the line of the breakdown that waiting for it, or computing it, belongs to
  Traffic traffic;  ///< of a collective
};
const LabelRow& row_of(Label label);

/// Who takes part in a collective.
enum class GroupKind : std::uint8_t {
  tensor,         ///< the tensor group
  context,        ///< the ranks that have the parts of a sequence
  sharding,       ///< the replicas that share states out among them
  copies,         ///< the ranks that hold the same shard, one of each sharding group
  replicas,       ///< all replicas of a stage
  experts,        ///< the ranks that exchange tokens
  expert_tensor,  ///< those that cut an expert
  expert_data,    ///< those that hold the same experts
  embedding,  ///< the stages that hold a copy of the word embedding; of all replicas where that is fused
};
GroupKind group_of(Label label);
/// Whether it was done forward, and is done again in the backward pass.
constexpr bool is_recomputed(Label label) {
  return label == Label::recomputed_attention || label == Label::recomputed_feed_forward ||
         label == Label::attention_core ||
         (label >= Label::recomputed_routing && label <= Label::recomputed_merging);
}
/// Whether its parameters are of experts, which have a folding of the ranks of their own.
constexpr bool is_of_experts(Label label) { return label == Label::experts; }
/// What tensor parallelism cuts; experts and what is done around them are split otherwise.
constexpr bool is_cut_by_tensor(Label label) {
  return label != Label::routing && label != Label::experts && label != Label::merging;
}
inline bool is_of_tensor_group(Label label) { return group_of(label) == GroupKind::tensor; }

}  // namespace windtunnel
