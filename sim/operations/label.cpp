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
constexpr LabelRow gather(const char* text) {
  return {text, OperationKind::all_gather, Part::data_comm, Traffic::zero_gather};
}
constexpr LabelRow scatter(const char* text) {
  return {text, OperationKind::reduce_scatter, Part::data_comm, Traffic::data_gradients};
}
constexpr LabelRow reduce(const char* text) {
  return {text, OperationKind::all_reduce, Part::data_comm, Traffic::data_gradients};
}

/// In the order of Label.
constexpr std::array rows{
    kernel(""),
    kernel("launch floor", Part::other),
    kernel("embedding"),
    kernel("attention"),
    kernel("feed-forward"),
    kernel("head"),
    kernel("recomputed attention"),
    kernel("recomputed feed-forward"),
    kernel("recomputed attention core"),
    kernel("weight gradients"),
    tensor("all-reduce of an activation", OperationKind::all_reduce),
    tensor("all-gather of an activation", OperationKind::all_gather),
    tensor("reduce-scatter of an activation", OperationKind::reduce_scatter),
    tensor("all-gather of a message", OperationKind::all_gather),
    kernel("codec of an activation", Part::codec),
    kernel("codec of parameters and gradients", Part::codec),
    gather("all-gather of embedding and head"),
    gather("all-gather of a layer"),
    scatter("reduce-scatter of a layer"),
    scatter("reduce-scatter of embedding and head"),
    reduce("all-reduce of a layer's shard"),
    reduce("all-reduce of embedding's and head's shard"),
};
static_assert(rows.size() == static_cast<std::size_t>(Label::reduce_edges) + 1);

}  // namespace

const LabelRow& row_of(Label label) { return rows[static_cast<std::size_t>(label)]; }

GroupKind group_of(Label label) {
  if (row_of(label).part == Part::tensor_comm) return GroupKind::tensor;
  return label == Label::reduce_layer || label == Label::reduce_edges ? GroupKind::copies
                                                                      : GroupKind::sharding;
}

const char* name_of(Stream stream) {
  switch (stream) {
    case Stream::compute:
      return "compute";
    case Stream::tensor:
      return "comm:tensor";
    case Stream::pipeline:
      return "comm:pipeline";
    case Stream::data:
      return "comm:data";
    case Stream::codec:
      return "codec";
  }
  return "?";
}

const char* name_of(Traffic traffic) {
  switch (traffic) {
    case Traffic::pipeline_forward:
      return "pipeline_forward";
    case Traffic::pipeline_backward:
      return "pipeline_backward";
    case Traffic::data_gradients:
      return "data_gradients";
    case Traffic::embedding_sync:
      return "embedding_sync";
    case Traffic::tensor_activations:
      return "tensor_activations";
    case Traffic::zero_gather:
      return "zero_gather";
  }
  return "?";
}

}  // namespace windtunnel
