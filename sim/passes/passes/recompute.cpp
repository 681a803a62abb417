#include "passes/pass.hpp"

namespace windtunnel {
namespace {

Label recomputed(Label label) {
  if (label == Label::attention) return Label::recomputed_attention;
  return label == Label::feed_forward ? Label::recomputed_feed_forward : label;
}

std::vector<Operation> operations_again(const ChunkOperations& chunk, const PassContext& in) {
  switch (in.plan->training.recompute) {
    case Recompute::none:
      return {};
    case Recompute::selective:
      return {in.attention_core};
    case Recompute::full:
      break;
  }
  std::vector<Operation> again = chunk.at(Direction::forward).layer;
  for (Operation& operation : again) operation.label = recomputed(operation.label);
  return again;
}

/// Recomputation: a layer's backward operations begin with those of its forward pass, all of them (Recompute::full, with their tensor
/// collectives: _checkpointed_forward in megatron/model/transformer.py, Megatron-LM v2.5) or the attention core alone (selective,
/// Korthikanti et al. 2022, section 5).
void recompute_activations(ChunkOperations& chunk, const PassContext& in) {
  const std::vector<Operation> again = operations_again(chunk, in);
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
