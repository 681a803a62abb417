#include "operations/label.hpp"

#include <array>
#include <cstddef>

namespace windtunnel {
namespace {

constexpr LabelRow kernel(const char* text, Part part = Part::compute) {
  return {text, OperationKind::kernel, part, Traffic::tensor_activations};
}
constexpr LabelRow tensor(const char* text, OperationKind kind) {
  return {text, kind, Part::tensor_comm, Traffic::tensor_activations, GroupKind::tensor};
}
constexpr LabelRow context(const char* text, OperationKind kind) {
  return {text, kind, Part::context_comm, Traffic::context, GroupKind::axis};
}
constexpr LabelRow sharded(const char* text, OperationKind kind,
                           GroupKind group = GroupKind::sharding) {
  const bool gathers = kind == OperationKind::all_gather || kind == OperationKind::broadcast;
  return {text, kind, Part::data_comm, gathers ? Traffic::zero_gather : Traffic::data_gradients,
          group};
}
constexpr LabelRow scattered(const char* text, GroupKind group = GroupKind::sharding) {
  return {text, OperationKind::reduce_scatter, Part::data_comm, Traffic::zero_scatter, group};
}
constexpr LabelRow exchange(const char* text, OperationKind kind, Traffic traffic,
                            GroupKind group) {
  return {text, kind, Part::expert_comm, traffic, group};
}
constexpr LabelRow message(const char* text, Traffic traffic) {
  return {text, OperationKind::message, Part::other, traffic};
}

constexpr OperationKind all_reduce = OperationKind::all_reduce,
                        all_gather = OperationKind::all_gather,
                        reduce_scatter = OperationKind::reduce_scatter,
                        all_to_all = OperationKind::all_to_all;

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
    tensor("all-reduce of an activation", all_reduce),
    tensor("all-gather of an activation", all_gather),
    tensor("reduce-scatter of an activation", reduce_scatter),
    context("all-gather of keys and values", all_gather),
    context("reduce-scatter of their gradients", reduce_scatter),
    context("all-to-all of heads", all_to_all),
    tensor("all-gather of a message", all_gather),
    kernel("codec of an activation", Part::codec),
    kernel("codec of parameters and gradients", Part::codec),
    kernel("gathering on the host", Part::data_comm),
    sharded("all-gather of embedding and head", all_gather),
    sharded("all-gather of a layer", all_gather),
    scattered("reduce-scatter of a layer"),
    scattered("reduce-scatter of embedding and head"),
    scattered("reduce-scatter of experts' gradients", GroupKind::expert_data),
    sharded("all-reduce of a layer's shard", all_reduce, GroupKind::copies),
    sharded("all-reduce of embedding's and head's shard", all_reduce, GroupKind::copies),
    message("activation to the next chunk", Traffic::pipeline_forward),
    message("gradient to the chunk before", Traffic::pipeline_backward),
    sharded("all-reduce of gradients", all_reduce, GroupKind::replicas),
    sharded("reduce-scatter of gradients", reduce_scatter, GroupKind::replicas),
    sharded("all-reduce of shards", all_reduce, GroupKind::copies),
    LabelRow{"all-reduce of the word embedding", all_reduce, Part::data_comm,
             Traffic::embedding_sync, GroupKind::embedding},
    kernel("optimizer step", Part::optimizer),
    sharded("all-gather of parameters", all_gather, GroupKind::replicas),
    sharded("broadcasts of parameters", OperationKind::broadcast, GroupKind::replicas),
    kernel("overhead", Part::other),
    kernel("routing"),
    kernel("shared experts"),
    kernel("experts"),
    kernel("merging"),
    kernel("recomputed routing"),
    kernel("recomputed shared experts"),
    kernel("recomputed experts"),
    kernel("recomputed merging"),
    exchange("dispatch of tokens", all_to_all, Traffic::expert_dispatch, GroupKind::experts),
    exchange("combine of tokens", all_to_all, Traffic::expert_combine, GroupKind::experts),
    exchange("all-gather of tokens", all_gather, Traffic::expert_dispatch,
             GroupKind::expert_tensor),
    exchange("reduce-scatter of tokens", reduce_scatter, Traffic::expert_combine,
             GroupKind::expert_tensor),
    sharded("all-reduce of experts' gradients", all_reduce, GroupKind::expert_data),
    sharded("reduce-scatter of experts' gradients", reduce_scatter, GroupKind::expert_data),
    sharded("all-gather of experts' parameters", all_gather, GroupKind::expert_data),
    sharded("all-reduce over an axis", all_reduce, GroupKind::axis),
    kernel("copies of activations", Part::other),
};
static_assert(rows.size() == enumerators<Label>().size());

}  // namespace

const LabelRow& row_of(Label label) { return rows[static_cast<std::size_t>(label)]; }

const char* name_of(Stream stream) {
  constexpr std::array<const char*, num_streams> names{"compute", "comm:tensor", "comm:pipeline",
                                                       "comm:data", "codec"};
  return names.at(static_cast<std::size_t>(stream));
}

}  // namespace windtunnel
