#include <algorithm>
#include <map>
#include <optional>

#include "core/contracts.hpp"
#include "passes/pass.hpp"

namespace windtunnel {
namespace {

Label recomputed(Label label) {
  static const std::map<Label, Label> again{
      {Label::attention, Label::recomputed_attention},
      {Label::context_attention, Label::attention_core},
      {Label::feed_forward, Label::recomputed_feed_forward},
      {Label::routing, Label::recomputed_routing},
      {Label::shared_experts, Label::recomputed_shared_experts},
      {Label::experts, Label::recomputed_experts},
      {Label::merging, Label::recomputed_merging}};
  const auto found = again.find(label);
  return found == again.end() ? label : found->second;
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
    if (row_of(operation.label).part == Part::context_comm &&
        is_collective(row_of(operation.label).kind))
      again.push_back(operation);
  again.push_back(core);
  return again;
}

/// Takes `freed` from what is kept, and gives it back.
Divisible<Bytes> taken(Held& held, const Divisible<Bytes>& freed) {
  held.at(Kept::tensors) = held.at(Kept::tensors) - freed;
  return freed;
}

/// The whole operation again; what it reads stays.
Operation whole_again(Operation& forward) {
  Operation again = forward;
  again.label = recomputed(forward.label);
  again.held = {};
  if (again.label == forward.label) return again;  // a collective
  again.held.at(Kept::tensors) =
      taken(forward.held, forward.held.at(Kept::tensors) - forward.held.at(Kept::module_input));
  return again;
}

/// A part of `forward` again, which keeps less for it.
Operation part_of(Operation& forward, const RecomputedPart& part) {
  Operation again = part.operation;
  again.share = 1;
  scale(again, forward.share);
  again.held = {};
  again.held.at(Kept::tensors) = taken(forward.held, forward.held.at(part.freed));
  return again;
}

/// True if the operation belongs to a module that is recomputed whole. Tensor collectives of an MLP come behind it [limit: they do
/// not run again where the chunk has experts too].
bool runs_again(const std::vector<Operation>& forward, std::size_t i, const PassContext& in) {
  const RecomputedModules& modules = in.plan->training.recompute_modules;
  const Label label = forward[i].label;
  const bool with_experts = modules.has(RecomputedModule::experts),
             with_mlp = modules.has(RecomputedModule::mlp);
  if (label == Label::feed_forward) return with_mlp;
  if (label == Label::shared_experts)
    return with_experts || modules.has(RecomputedModule::shared_experts);
  if (label == Label::routing || label == Label::experts || label == Label::merging)
    return with_experts;
  if (!is_collective(row_of(label).kind)) return false;
  if (group_of(label) == GroupKind::experts) return with_experts;
  const auto here = forward.begin() + static_cast<std::ptrdiff_t>(i);
  const bool is_of_mlp = std::any_of(forward.begin(), here, [](const Operation& operation) {
    return operation.label == Label::feed_forward;
  });
  return with_mlp && in.chunk.expert_layers == 0 && is_of_mlp;
}

/// Modules of the layer, in the order of the forward pass.
std::vector<Operation> modules_again(std::vector<Operation>& forward, const PassContext& in) {
  std::vector<Operation> core, again;
  if (in.plan->training.recompute_modules.has(RecomputedModule::attention_core))
    core = moved_core(forward, in);
  for (std::size_t i = 0; i < forward.size(); ++i) {
    std::optional<Operation> whole;
    if (runs_again(forward, i, in)) whole = whole_again(forward[i]);
    for (const RecomputedPart& part : in.recomputed_parts)
      // The norm before the router is no part of the experts' module.
      if (part.of == forward[i].label && (!whole || part.freed == Kept::norm))
        again.push_back(part_of(forward[i], part));
    if (whole) again.push_back(*whole);
    if (forward[i].label == Label::attention) again.insert(again.end(), core.begin(), core.end());
  }
  return again;
}

/// All of the layer.
std::vector<Operation> whole_layer(std::vector<Operation>& forward) {
  std::vector<Operation> again = forward;
  for (Operation& operation : again) operation.label = recomputed(operation.label);
  keep_input(forward);
  return again;
}

/// `part` of an operation again, timed for a layer that has it; it holds all that the operation held forward.
Operation part_again(const Operation& operation, Operation part) {
  scale(part, operation.share);
  part.held = operation.held;
  part.held.parameters = {};
  return part;
}

/// The whole layer without its last product and what sums its results up.
std::vector<Operation> layer_without_output(std::vector<Operation>& forward,
                                            const PassContext& in) {
  std::vector<Operation> again = whole_layer(forward);
  const auto last = std::find_if(again.begin(), again.end(), [](const Operation& operation) {
    return operation.label == Label::recomputed_feed_forward;
  });
  if (last == again.end()) return again;
  *last = part_again(*last, in.feed_forward_again);
  again.erase(std::remove_if(last + 1, again.end(),
                             [](const Operation& operation) {
                               return operation.label == Label::scatter_activation ||
                                      operation.label == Label::reduce_activation;
                             }),
              again.end());
  return again;
}

/// What runs again of an operation if single ones are recomputed; none of a collective, nor of what merges the experts' outputs.
std::optional<Operation> again_around_saved(const Operation& operation, const PassContext& in) {
  switch (operation.label) {
    case Label::attention:
      return part_again(operation, in.attention_again);
    case Label::feed_forward:
      return part_again(operation, in.feed_forward_again);
    case Label::experts:
      return part_again(operation, in.experts_again);
    case Label::routing:
    case Label::shared_experts: {
      Operation whole = operation;
      whole.label = recomputed(operation.label);
      whole.held.parameters = {};
      return whole;
    }
    default:
      return std::nullopt;
  }
}

/// The layer but for what is saved, with the gathers of its halves' inputs. Exchanges of tokens are saved.
std::vector<Operation> layer_around_saved(std::vector<Operation>& forward, const PassContext& in) {
  std::vector<Operation> again;
  bool behind_attention = false;
  for (Operation& operation : forward) {
    if (std::optional<Operation> part = again_around_saved(operation, in)) {
      behind_attention = operation.label == Label::attention;
      again.push_back(*std::move(part));
      operation.held.at(Kept::tensors) = operation.held.at(Kept::saved);
    } else if (operation.label == Label::gather_activation ||
               (operation.label == Label::reduce_activation && behind_attention)) {
      again.push_back(operation);
    }
  }
  return again;
}

/// Moves the operations that are recomputed to the beginning of a layer's backward pass; the forward pass keeps less.
std::vector<Operation> operations_again(std::vector<Operation>& forward, const PassContext& in) {
  const bool by_operation = in.software->recomputed_unit == RecomputedUnit::operations;
  switch (in.plan->training.recompute) {
    case Recompute::none:
      return {};
    case Recompute::selective:
      return by_operation ? layer_around_saved(forward, in) : modules_again(forward, in);
    case Recompute::full:
      return by_operation ? layer_without_output(forward, in) : whole_layer(forward);
  }
  WT_UNREACHABLE();
}

/// Recomputes some layers only. Numbers of a layer's operations are means over the layers. Recomputation adds nothing to the peak if a
/// layer that is not recomputed has finished its backward pass before: that freed as much.
void recompute_some(std::vector<Operation>& forward, std::vector<Operation>& again,
                    const std::vector<Operation>& all_kept, const ChunkRole& chunk) {
  const double left_out = chunk.not_recomputed / static_cast<double>(chunk.layers);
  for (std::size_t i = 0; i < forward.size(); ++i)
    for (const Kept kind : enumerators<Kept>()) {
      Divisible<Bytes>& kept = forward[i].held.at(kind);
      kept = kept * (1 - left_out) + all_kept[i].held.at(kind) * left_out;
    }
  for (Operation& operation : again) {
    scale(operation, 1 - left_out);
    if (chunk.leaves_out_last) operation.held = {};
  }
}

/// Recomputation: a layer's backward operations begin with those of its forward pass, all of them (Recompute::full, with their tensor
/// collectives: _checkpointed_forward in megatron/model/transformer.py, Megatron-LM v2.5) or some modules (selective; the attention core
/// alone: Korthikanti et al. 2022, section 5; others: megatron/core/transformer/transformer_layer.py, multi_latent_attention.py and
/// moe/moe_layer.py, Megatron-Core 0.15); where the stack recomputes operations, those that it has to (RecomputedUnit). What is computed again is kept by the backward pass of one layer, not by every microbatch in
/// flight (their table 2). Some layers of all: _checkpointed_forward in megatron/core/transformer/transformer_block.py, Megatron-Core 0.12, with
/// recompute_method block; ac_freq in torchtitan/models/llama3/infra/parallelize.py, June 2025.
void recompute_activations(ChunkOperations& chunk, const PassContext& in) {
  const ChunkRole& role = in.chunk;
  if (in.plan->training.recompute == Recompute::none ||
      (role.layers > 0 && role.layers == role.not_recomputed))
    return;
  std::vector<Operation>& forward = chunk.at(Direction::forward).layer;
  const std::vector<Operation> all_kept = forward;
  std::vector<Operation> again = operations_again(forward, in);
  if (role.not_recomputed > 0) recompute_some(forward, again, all_kept, role);
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
