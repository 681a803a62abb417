#include "passes/pass.hpp"

namespace windtunnel {
namespace {

Label recomputed(Label label) {
  switch (label) {
    case Label::attention:
      return Label::recomputed_attention;
    case Label::context_attention:
      return Label::attention_core;
    case Label::feed_forward:
      return Label::recomputed_feed_forward;
    case Label::routing:
      return Label::recomputed_routing;
    case Label::shared_experts:
      return Label::recomputed_shared_experts;
    case Label::experts:
      return Label::recomputed_experts;
    case Label::merging:
      return Label::recomputed_merging;
    default:
      return label;
  }
}

/// A layer keeps its input alone.
void keep_input(std::vector<Operation>& forward) {
  for (Operation& operation : forward) {
    Held& held = operation.held;
    held.at(Kept::tensors) = held.at(Kept::input);
    held.at(Kept::scores) = {};
  }
}

/// The attention core, the collectives that it needs again where sequences are cut, and the scores that the layer keeps no more.
std::vector<Operation> moved_core(std::vector<Operation>& forward, const PassContext& in) {
  Operation core = in.attention_core;
  for (Operation& operation : forward) {
    if (operation.label == Label::attention)
      core.held.at(Kept::scores) = operation.held.at(Kept::scores);
    operation.held.at(Kept::scores) = {};
  }
  std::vector<Operation> again;
  for (const Operation& operation : forward)
    if (group_of(operation.label) == GroupKind::context &&
        is_collective(row_of(operation.label).kind))
      again.push_back(operation);
  again.push_back(core);
  return again;
}

/// What the backward pass of a layer begins with; the forward pass keeps less.
std::vector<Operation> operations_again(std::vector<Operation>& forward, const PassContext& in) {
  switch (in.plan->training.recompute) {
    case Recompute::none:
      return {};
    case Recompute::selective:
      return moved_core(forward, in);
    case Recompute::full:
      break;
  }
  std::vector<Operation> again = forward;
  for (Operation& operation : again) operation.label = recomputed(operation.label);
  keep_input(forward);
  return again;
}

/// Recomputation: a layer's backward operations begin with those of its forward pass, all of them (Recompute::full, with their tensor
/// collectives: _checkpointed_forward in megatron/model/transformer.py, Megatron-LM v2.5) or the attention core alone (selective,
/// Korthikanti et al. 2022, section 5). What is computed again is kept by the backward pass of one layer, not by every microbatch in
/// flight (their table 2).
void recompute_activations(ChunkOperations& chunk, const PassContext& in) {
  if (in.plan->training.recompute == Recompute::none) return;
  const std::vector<Operation> again = operations_again(chunk.at(Direction::forward).layer, in);
  for (const Direction direction : {Direction::backward, Direction::input_gradient}) {
    std::vector<Operation>& layer = chunk.at(direction).layer;
    layer.insert(layer.begin(), again.begin(), again.end());
  }
}

}  // namespace

const OperationPass& recompute_pass() {
  static const OperationPass pass{"recompute", recompute_activations};
  return pass;
}

}  // namespace windtunnel
