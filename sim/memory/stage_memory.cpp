#include <algorithm>
#include <utility>

#include "core/contracts.hpp"
#include "cost/end_of_iteration.hpp"
#include "cost/stage_cost.hpp"
#include "memory/codec_bytes.hpp"
#include "memory/memory_account.hpp"
#include "memory/memory_correction.hpp"
#include "memory/stage_states.hpp"
#include "plan/gradient_reduction.hpp"

namespace windtunnel {
namespace {

/// What a stage is, and the operations its memory is added up from: those of all its chunks as if they were one.
struct Stage {
  const Plan& plan;
  const SoftwareProfile& software;
  StageId id;
  ChunkRole role;
  const ChunkOperations& operations;
  ParameterCounts parameters;
  StageStates states;
};

/// What exists only while a layer's backward pass runs, split as StageMemory prints it.
struct WorkingSet {
  Bytes layer_recomputation{}, weight_gradient{}, attention_scores{}, logits{}, fixed{};
  Bytes sum() const {
    return layer_recomputation + weight_gradient + attention_scores + logits + fixed;
  }
};

/// One candidate for the allocator's maximum.
struct Moment {
  StageStates states{};
  Bytes activations{};
  WorkingSet work{};
  Bytes step_temporary{};
  bool in_step = false;
  Bytes sum() const { return states.total() + activations + work.sum() + step_temporary; }
};

/// Stages of a role differ in no operation: what depends on the stage, compressed scatters of ZeRO 3, is of plans with one stage.
const ChunkOperations& operations_of(const MemoryInputs& inputs, const ChunkRole& role,
                                     StageId id) {
  for (const MemoryInputs::KnownRole& known : inputs.known_roles)
    if (known.role == role) return *known.operations;
  StageCostInputs model;
  model.model = inputs.model;
  model.plan = inputs.plan;
  model.software = inputs.software;
  model.stage = id;
  inputs.known_roles.push_back(
      {role, std::make_shared<const ChunkOperations>(chunk_operations(model, role))});
  return *inputs.known_roles.back().operations;
}

/// What quantised formats add to the weights of `layers` layers: their casts by rows and by columns, beside the bf16 weights or in
/// their place. ZeRO 3 has them of the layer that computes only, which is not counted [assumed].
Bytes cast_weights(const Transformer& model, const Plan& plan, const SoftwareProfile& software,
                   int layers, double experts) {
  const Precision precision = plan.training.precision;
  if (!is_quantized(precision) || plan.parallel.zero_stage == 3) return {};
  const Bytes kept = software.keeps_operands(precision) ? element_size(precision) : Bytes{};
  return (operand_size(precision) * 2.0 - kept) *
         (layers * layer_matrix_parameters(model, plan.parallel.tensor) + experts);
}

/// Of all chunks of a stage.
int expert_layers_of(const Transformer& model, const Plan& plan, StageId id) {
  int layers = 0;
  for (int chunk = 0; model.moe && chunk < plan.parallel.virtual_pipeline; ++chunk)
    layers += chunk_role(model, plan, {id, chunk}).expert_layers;
  return layers;
}

Stage stage_of(const MemoryInputs& inputs, StageId id) {
  const Plan& plan = *inputs.plan;
  const ChunkRole role{plan.stage_layers[id.index()], plan.has_embedding(id), plan.has_head(id),
                       expert_layers_of(*inputs.model, plan, id)};
  const ChunkOperations& operations = operations_of(inputs, role, id);
  const ParameterCounts parameters = count_parameters(operations.at(Direction::forward));
  StageStates states = stage_states(plan.training, *inputs.software, parameters);
  states.weights +=
      cast_weights(*inputs.model, plan, *inputs.software, role.layers, parameters.experts);
  return {plan, *inputs.software, id, role, operations, parameters, states};
}

/// A layer's output.
Bytes boundary(const Stage& stage) { return stage.operations.message.held.at(Kept::tensors).sum(); }

/// One microbatch in flight:  l_i kept + [not last] 2 sbh + [first] sbh.  The middle term is the
/// stage's output, one for each model chunk that hands it to another stage, kept until its backward
/// pass, unless the stack frees it when it is sent.
Bytes activation_per_microbatch(const Stage& stage) {
  const PassOperations& forward = stage.operations.at(Direction::forward);
  const int outputs =
      stage.software.frees_outputs ? 0 : stage.plan.chunk_map().num_outputs(stage.id);
  return kept_by_pass(forward, Kept::tensors) + kept_by_pass(forward, Kept::scores) +
         boundary(stage) * outputs;
}

/// The largest of those of a layer, and what embedding and head hold beside it.
Bytes weight_gradient(const PassOperations& backward) {
  Bytes largest{};
  for (const Operation& operation : backward.layer)
    largest = std::max(largest, operation.held.at(Kept::weight_gradient).sum());
  return largest + kept_by_edges(backward, Kept::weight_gradient);
}

/// Backward pass of one layer, and of the head (docs/memory.md, sections 3 and 7). Gradients pass through a stage without layers too.
WorkingSet backward_working_set(const Stage& stage) {
  const PassOperations& backward = stage.operations.at(Direction::backward);
  const auto one_layer = [&backward](Kept kind) {
    return kept_by_layer(backward, kind) + kept_by_edges(backward, kind);
  };
  WorkingSet work;
  work.fixed = stage.software.fixed_work + one_layer(Kept::passing) + one_layer(Kept::gathered);
  work.logits = one_layer(Kept::logits);
  if (stage.role.layers == 0) return work;
  work.weight_gradient = weight_gradient(backward);
  work.layer_recomputation = one_layer(Kept::tensors);
  work.attention_scores = one_layer(Kept::scores);
  return work;
}

/// live = max(work, [last] logits): the head's backward pass ends before a layer's begins
/// (docs/memory.md, section 3). Fully sharded both are counted (section 7; bounds only).
WorkingSet live_set(const Stage& stage) {
  WorkingSet work = backward_working_set(stage);
  if (stage.plan.parallel.zero_stage == 3) return work;
  WorkingSet head;
  std::swap(head.logits, work.logits);
  return head.logits > work.sum() ? head : work;
}

/// The larger of two moments; of equal ones the earlier.
Moment larger(const Moment& a, const Moment& b) { return b.sum() > a.sum() ? b : a; }

/// allocated = max( (k-2) N + act(n_all) + live,  k N + act(n_grad) + live,  k N + step ): the
/// first backward pass has no gradients yet, a later one has; or the optimizer's step
/// (docs/memory.md, section 3).
Moment steady_maximum(const Stage& stage, Bytes all, Bytes with_gradients) {
  const WorkingSet live = live_set(stage);
  Moment first_backward{.states = stage.states, .activations = all, .work = live};
  first_backward.states.live_gradients -= stage.states.freed_gradients;
  const Moment backward{.states = stage.states, .activations = with_gradients, .work = live};
  const Moment step{
      .states = stage.states, .step_temporary = stage.states.step_temporary, .in_step = true};
  return larger(larger(backward, first_backward), step);
}

/// States of the first step: nothing is stale, and the step makes moments and fp32 gradients.
StageStates first_states(const Stage& stage) {
  StageStates states = stage.states;
  states.stale_gradients = Bytes{};
  return states;
}

/// First step (stack B):  allocated = max( 8 N + act + live,  20 N + [not first] 4 sbh )
/// (docs/memory.md, section 3).
Moment first_maximum(const Stage& stage, Bytes all) {
  Moment backward{.states = first_states(stage), .activations = all, .work = live_set(stage)};
  backward.states.optimizer -= stage.states.moments;
  Moment step{.states = first_states(stage),
              .step_temporary = stage.states.main_gradients,
              .in_step = true};
  if (!stage.role.first) step.work.fixed = boundary(stage) * 2;
  return larger(backward, step);
}

/// The caching allocator's blocks before slack. Memory freed in one phase is not shared with the
/// other's large blocks, but the temporaries of both phases share one pool:
///   pool = k N + act(n_grad) + max(live, step);   first step: 20 N + act(n_all) + live
Bytes steady_pool(const Stage& stage, Bytes with_gradients) {
  return stage.states.total() + with_gradients +
         std::max(live_set(stage).sum(), stage.states.step_temporary);
}
Bytes first_pool(const Stage& stage, Bytes all) {
  return first_states(stage).total() + stage.states.main_gradients + all + live_set(stage).sum();
}

void write_lines(StageMemory& memory, const Moment& moment) {
  memory.weights = moment.states.weights;
  memory.live_gradients = moment.states.live_gradients;
  memory.stale_gradients = moment.states.stale_gradients;
  memory.gradients = memory.live_gradients + memory.stale_gradients;
  memory.optimizer = moment.states.optimizer;
  memory.activations = moment.activations;
  memory.layer_recomputation = moment.work.layer_recomputation;
  memory.weight_gradient = moment.work.weight_gradient;
  memory.attention_scores = moment.work.attention_scores;
  memory.logits = moment.work.logits;
  memory.fixed = moment.work.fixed;
  memory.step_temporary = moment.step_temporary;
  memory.buffers = moment.work.sum() + moment.step_temporary;
  memory.set_by_step = moment.in_step;
  memory.allocated = moment.sum();
}

/// Verdict and total (docs/memory.md, sections 3 and 5):
///   fits  = phi * allocated + context <= usable;   at risk = reserved + context > usable, or total > 0.9 capacity, while it fits
///   total = reserved + context, cut at what is usable (the allocator then frees its cache), but never below what is required
void judge(StageMemory& memory, const MemoryInputs& inputs, const Device& device) {
  const SoftwareProfile& software = *inputs.software;
  const Parallel& parallel = inputs.plan->parallel;
  memory.context = device.context + software.extra_context;
  memory.usable = device.usable_memory;
  memory.required = software.fragmentation * memory.allocated + memory.context;
  const Bytes wanted = memory.reserved + memory.context;
  memory.total = std::min(wanted, std::max(memory.usable, memory.required));
  const bool is_trained = inputs.correction != nullptr && inputs.correction->is_better();
  if (memory.required > memory.usable)
    memory.verdict = MemoryVerdict::does_not_fit;
  else if (parallel.zero_stage == 3 && parallel.replicas() > 1 && !is_trained)
    memory.verdict = MemoryVerdict::lower_bound;
  else if (wanted > memory.usable || memory.total > safe_share * device.memory_capacity)
    memory.verdict = MemoryVerdict::at_risk;
}

/// What a trained correction adds to the allocator's figures, if it speaks, stands among the buffers.
void correct(StageMemory& memory, const MemoryInputs& inputs) {
  if (inputs.correction == nullptr || !inputs.correction->is_better()) return;
  const double factor = correction_factor(*inputs.correction, memory_features(inputs, memory));
  const Bytes added = memory.allocated * (factor - 1);
  memory.fixed += added;
  memory.buffers += added;
  memory.allocated += added;
  memory.pool *= factor;
  memory.reserved *= factor;
}

/// What a rank of the stage does once an iteration, and in passes that reduce gradients.
std::vector<Operation> end_of_stage(const MemoryInputs& inputs, const Stage& stage) {
  EndInputs in{inputs.model, inputs.plan, inputs.software, nullptr, stage.id, stage.parameters};
  std::vector<Operation> end = end_of_iteration(in);
  if (!reduces_by_chunk(stage.plan)) return end;
  for (int chunk = 0; chunk < stage.plan.parallel.virtual_pipeline; ++chunk) {
    const ChunkRole role = chunk_role(*inputs.model, stage.plan, {stage.id, chunk});
    in.parameters = count_parameters(operations_of(inputs, role, stage.id).at(Direction::forward));
    for (const Operation& reduction : chunk_reductions(in, chunk)) end.push_back(reduction);
  }
  return end;
}

Bytes kept_by_codecs(const MemoryInputs& inputs, const Stage& stage) {
  const ChunkMap map = stage.plan.chunk_map();
  CodecBytes bytes;
  const bool has_next = !map.stages_behind(stage.id).empty(),
             has_previous = !map.stages_before(stage.id).empty();
  bytes.add_message(stage.operations.message, has_next, has_previous);
  bytes.add_message(stage.operations.gradient_message, has_previous, has_next);
  for (const Direction direction : {Direction::forward, Direction::backward})
    bytes.add(stage.operations.at(direction));
  for (const Operation& operation : end_of_stage(inputs, stage)) bytes.add(operation);
  return bytes.total();
}

}  // namespace

StageMemory account_stage(const MemoryInputs& inputs, StageId id) {
  const Stage stage = stage_of(inputs, id);
  const double chunks = inputs.plan->parallel.virtual_pipeline;
  const Bytes each = activation_per_microbatch(stage);
  const Bytes all = each * (inputs.in_flight[id.index()] / chunks);
  const Bytes with_gradients = each * (inputs.in_flight_with_gradients[id.index()] / chunks);
  const bool first_step = inputs.reading == MemoryReading::first_step;

  StageMemory memory;
  memory.stage = id;
  memory.parameters = stage.parameters.all;
  memory.microbatches_in_flight = inputs.in_flight[id.index()] / chunks;
  memory.activation_per_microbatch = each;
  write_lines(memory,
              first_step ? first_maximum(stage, all) : steady_maximum(stage, all, with_gradients));
  const Bytes pool = first_step ? first_pool(stage, all) : steady_pool(stage, with_gradients);
  if (has_codecs(stage.plan.compression)) memory.codec = kept_by_codecs(inputs, stage);
  memory.buffers += memory.codec;
  memory.allocated += memory.codec;
  memory.pool = std::max(pool + memory.codec, memory.allocated);
  // Nothing has been recycled yet in the first step: no slack.
  memory.reserved = memory.pool * (first_step ? 1 : inputs.software->allocator_slack);
  correct(memory, inputs);
  judge(memory, inputs, *inputs.device_of_stage[id.index()]);
  WT_ENSURE(memory.total > Bytes{});
  return memory;
}

}  // namespace windtunnel
