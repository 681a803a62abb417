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
};
inline constexpr int num_traffic_classes = 6;
const char* name_of(Traffic traffic);

/// Where the time of a computing span goes: its line in the breakdown. A span's parts add up to its
/// duration.
enum class Part : std::uint8_t { compute, tensor_comm, codec, optimizer, other, data_comm };
inline constexpr int num_parts = 6;

/// What an operation of a pass is. Its row of the table (row_of) says what it is called and counted as.
enum class Label : std::uint8_t {
  whole_pass,    ///< not an operation: a pass that is played as one
  launch_floor,  ///< kernels wait to be launched
  embedding,
  attention,
  feed_forward,
  head,
  recomputed_attention,
  recomputed_feed_forward,
  attention_core,      ///< scores, softmax and context, computed again
  weight_gradients,    ///< beside a tensor collective, or in a pass of their own
  reduce_activation,   ///< tensor all-reduce
  gather_activation,   ///< tensor all-gather (sequence parallelism)
  scatter_activation,  ///< tensor reduce-scatter
  gather_message,      ///< a scattered stage message, gathered on receipt
  activation_codec,
  sharding_codec,
  gather_edges,   ///< the parameters of embedding and head
  gather_layer,   ///< the parameters of one layer
  scatter_layer,  ///< the gradients of one layer
  scatter_edges,  ///< the gradients of embedding and head
  reduce_layer,  ///< a rank's shard of a layer's gradients, among the groups that hold copies of it
  reduce_edges,  ///< the same of embedding and head
};

/// How many ranks an operation takes, and what they do.
enum class OperationKind : std::uint8_t {
  kernel,
  all_reduce,
  all_gather,
  reduce_scatter,
};
constexpr bool is_collective(OperationKind kind) { return kind != OperationKind::kernel; }

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
  tensor,    ///< the tensor group
  sharding,  ///< the replicas that share states out among them
  copies,    ///< the ranks that hold the same shard, one of each sharding group
};
GroupKind group_of(Label label);
inline bool is_of_tensor_group(Label label) { return group_of(label) == GroupKind::tensor; }

}  // namespace windtunnel
