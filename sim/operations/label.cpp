#include "operations/label.hpp"

#include <array>
#include <cstddef>

namespace windtunnel {
namespace {

constexpr LabelRow kernel(const char* text, Part part = Part::compute) {
  return {text, OperationKind::kernel, part, Traffic::tensor_activations};
}
constexpr LabelRow tensor(const char* text, OperationKind kind) {
  return {text, kind, Part::tensor_comm, Traffic::tensor_activations};
}
constexpr LabelRow context(const char* text, OperationKind kind) {
  return {text, kind, Part::context_comm, Traffic::context};
}
constexpr LabelRow gather(const char* text) {
  return {text, OperationKind::all_gather, Part::data_comm, Traffic::zero_gather};
}
constexpr LabelRow scatter(const char* text) {
  return {text, OperationKind::reduce_scatter, Part::data_comm, Traffic::zero_scatter};
}
constexpr LabelRow reduce(const char* text) {
  return {text, OperationKind::all_reduce, Part::data_comm, Traffic::data_gradients};
}
constexpr LabelRow exchange(const char* text, OperationKind kind, Traffic traffic) {
  return {text, kind, Part::expert_comm, traffic};
}
constexpr LabelRow at_end(const char* text, OperationKind kind, Traffic traffic) {
  return {text, kind, Part::data_comm, traffic};
}
constexpr LabelRow message(const char* text, Traffic traffic) {
  return {text, OperationKind::message, Part::other, traffic};
}

/// In the order of Label.
constexpr std::array rows{
    kernel(""),
    kernel("reading a microbatch", Part::other),
    kernel("launch floor", Part::other),
    kernel("embedding"),
    kernel("attention"),
    kernel("feed-forward"),
    kernel("head"),
    kernel("recomputed attention"),
    kernel("recomputed feed-forward"),
    kernel("recomputed attention core"),
    kernel("attention core"),
    kernel("weight gradients"),
    kernel("input gradients"),
    tensor("all-reduce of an activation", OperationKind::all_reduce),
    tensor("all-gather of an activation", OperationKind::all_gather),
    tensor("reduce-scatter of an activation", OperationKind::reduce_scatter),
    context("all-gather of keys and values", OperationKind::all_gather),
    context("reduce-scatter of their gradients", OperationKind::reduce_scatter),
    context("all-to-all of heads", OperationKind::all_to_all),
    tensor("all-gather of a message", OperationKind::all_gather),
    kernel("codec of an activation", Part::codec),
    kernel("codec of parameters and gradients", Part::codec),
    kernel("gathering on the host", Part::data_comm),
    gather("all-gather of embedding and head"),
    gather("all-gather of a layer"),
    scatter("reduce-scatter of a layer"),
    scatter("reduce-scatter of embedding and head"),
    scatter("reduce-scatter of experts' gradients"),
    reduce("all-reduce of a layer's shard"),
    reduce("all-reduce of embedding's and head's shard"),
    message("activation to the next chunk", Traffic::pipeline_forward),
    message("gradient to the chunk before", Traffic::pipeline_backward),
    at_end("all-reduce of gradients", OperationKind::all_reduce, Traffic::data_gradients),
    at_end("reduce-scatter of gradients", OperationKind::reduce_scatter, Traffic::data_gradients),
    at_end("all-reduce of shards", OperationKind::all_reduce, Traffic::data_gradients),
    at_end("all-reduce of the word embedding", OperationKind::all_reduce, Traffic::embedding_sync),
    kernel("optimizer step", Part::optimizer),
    at_end("all-gather of parameters", OperationKind::all_gather, Traffic::zero_gather),
    at_end("broadcasts of parameters", OperationKind::broadcast, Traffic::zero_gather),
    kernel("overhead", Part::other),
    kernel("routing"),
    kernel("shared experts"),
    kernel("experts"),
    kernel("merging"),
    kernel("recomputed routing"),
    kernel("recomputed shared experts"),
    kernel("recomputed experts"),
    kernel("recomputed merging"),
    exchange("dispatch of tokens", OperationKind::all_to_all, Traffic::expert_dispatch),
    exchange("combine of tokens", OperationKind::all_to_all, Traffic::expert_combine),
    exchange("all-gather of tokens", OperationKind::all_gather, Traffic::expert_dispatch),
    exchange("reduce-scatter of tokens", OperationKind::reduce_scatter, Traffic::expert_combine),
    reduce("all-reduce of experts' gradients"),
    at_end("reduce-scatter of experts' gradients", OperationKind::reduce_scatter,
           Traffic::data_gradients),
    gather("all-gather of experts' parameters"),
    reduce("all-reduce over an axis"),
    kernel("copies of activations", Part::other),
};
static_assert(rows.size() == static_cast<std::size_t>(Label::activation_copies) + 1);

}  // namespace

const LabelRow& row_of(Label label) { return rows[static_cast<std::size_t>(label)]; }

GroupKind group_of(Label label) {
  if (row_of(label).part == Part::tensor_comm) return GroupKind::tensor;
  if (row_of(label).part == Part::context_comm) return GroupKind::axis;
  switch (label) {
    case Label::reduce_over_axis:
      return GroupKind::axis;
    case Label::reduce_shards:
    case Label::reduce_layer:
    case Label::reduce_edges:
      return GroupKind::copies;
    case Label::reduce_gradients:
    case Label::scatter_gradients:
    case Label::gather_parameters:
    case Label::broadcast_parameters:
      return GroupKind::replicas;
    case Label::synchronise_embedding:
      return GroupKind::embedding;
    case Label::dispatch_tokens:
    case Label::combine_tokens:
      return GroupKind::experts;
    case Label::gather_tokens:
    case Label::scatter_tokens:
      return GroupKind::expert_tensor;
    case Label::reduce_expert_gradients:
    case Label::scatter_experts:
    case Label::scatter_expert_gradients:
    case Label::gather_expert_parameters:
      return GroupKind::expert_data;
    default:
      return GroupKind::sharding;
  }
}

const char* name_of(Stream stream) {
  constexpr std::array<const char*, num_streams> names{"compute", "comm:tensor", "comm:pipeline",
                                                       "comm:data", "codec"};
  return names.at(static_cast<std::size_t>(stream));
}

}  // namespace windtunnel
