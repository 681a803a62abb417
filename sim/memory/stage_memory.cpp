#include <algorithm>

#include "core/contracts.hpp"
#include "memory/activation_bytes.hpp"
#include "memory/codec_bytes.hpp"
#include "memory/memory_account.hpp"
#include "memory/memory_correction.hpp"
#include "memory/stage_states.hpp"

namespace windtunnel {
namespace {

/// What a stage is, and the bytes its memory is added up from.
struct Stage {
  const Transformer& model;
  const Plan& plan;
  const SoftwareProfile& software;
  StageId id;
  int layers;
  bool first, last;
  double parameters;
  StageStates states;
  ActivationBytes tensors;
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

/// N_i = l_i layer + [first] embedding + [last] head (docs/memory.md, section 1).
double stage_parameters(const Transformer& model, const Plan& plan, StageId stage, int layers) {
  const int t = plan.parallel.tensor;
  double parameters = layers * layer_parameters(model, t);
  if (plan.has_embedding(stage)) parameters += embedding_parameters(model, t);
  if (plan.has_head(stage)) parameters += head_parameters(model, t, plan.head_place());
  return parameters;
}

Stage stage_of(const MemoryInputs& inputs, StageId id) {
  const Transformer& model = *inputs.model;
  const Plan& plan = *inputs.plan;
  const int layers = plan.stage_layers[id.index()];
  const double parameters = stage_parameters(model, plan, id, layers);
  return {.model = model,
          .plan = plan,
          .software = *inputs.software,
          .id = id,
          .layers = layers,
          .first = plan.has_embedding(id),
          .last = plan.has_head(id),
          .parameters = parameters,
          .states = stage_states(plan, *inputs.software, parameters),
          .tensors = activation_bytes(model, plan)};
}

/// What a layer keeps of one microbatch until its backward pass. Full: its input. Selective: all
/// but the attention scores. None: everything (Korthikanti et al. 2022, table 2).
Bytes kept_of_layer(const Stage& stage) {
  switch (stage.plan.training.recompute) {
    case Recompute::full:
      return stage.tensors.boundary;
    case Recompute::selective:
      return stage.tensors.layer;
    case Recompute::none:
      break;
  }
  return stage.tensors.layer + stage.tensors.attention_scores;
}

/// One microbatch in flight:  l_i kept + [not last] 2 sbh + [first] sbh.  The middle term is the
/// stage's output, kept until its backward pass: one for each model chunk that hands it to another
/// stage.
Bytes activation_per_microbatch(const Stage& stage) {
  const int outputs = stage.plan.chunk_map().num_outputs(stage.id);
  Bytes bytes = kept_of_layer(stage) * stage.layers + stage.tensors.boundary * outputs;
  if (stage.first) bytes += stage.tensors.embedding_mask;
  return bytes;
}

/// Backward pass of one layer (docs/memory.md, section 3):
///   work = 8h^2/t + sbh(10 + 24/t) + 5as^2b/t + sbh(4 + 8/t) - [first] 2sbh + 46 MiB
/// The first stage sends no gradient backwards. What is not recomputed is counted among the
/// activations instead.
WorkingSet layer_working_set(const Stage& stage) {
  const Recompute recompute = stage.plan.training.recompute;
  WorkingSet work;
  work.fixed = stage.software.fixed_work + stage.tensors.passing;
  if (stage.first) work.fixed -= stage.tensors.boundary;
  if (stage.layers == 0) return work;
  work.weight_gradient = stage.tensors.weight_gradient;
  if (recompute == Recompute::full) work.layer_recomputation = stage.tensors.layer;
  if (recompute != Recompute::none) work.attention_scores = stage.tensors.attention_scores;
  return work;
}

/// Fully sharded (docs/memory.md, section 7; bounds only): the layer that computes and those gathered ahead of it (k), one layer's
/// gradient, the words and their gradient, one recomputed layer, logits:
///   work = (4 + 2k) layer + 4 V'h/t + [full] 32 sbh + 4 s b V'/t       in half precision
WorkingSet sharded_working_set(const Stage& stage) {
  const Training& training = stage.plan.training;
  const Bytes element = element_size(training.precision);
  const int t = stage.plan.parallel.tensor;
  const Bytes layer = stage.layers == 0 ? Bytes{} : element * layer_parameters(stage.model, t);
  const bool holds_words = stage.first || stage.last;
  const Bytes words = holds_words ? element * word_embedding_parameters(stage.model, t) : Bytes{};
  WorkingSet work;
  const int gathered = std::min(stage.layers, 1 + stage.plan.parallel.zero_prefetch);
  work.fixed = stage.software.fixed_work + layer * gathered + words;
  work.weight_gradient = layer + words;
  if (training.recompute == Recompute::full) work.layer_recomputation = stage.tensors.layer;
  if (training.recompute != Recompute::none) work.attention_scores = stage.tensors.attention_scores;
  if (stage.last) work.logits = stage.tensors.logits;
  return work;
}

/// live = max(work, [last] logits): the head's backward pass ends before a layer's begins
/// (docs/memory.md, section 3).
WorkingSet live_set(const Stage& stage) {
  if (stage.plan.parallel.zero_stage == 3) return sharded_working_set(stage);
  const WorkingSet work = layer_working_set(stage);
  if (!stage.last || stage.tensors.logits <= work.sum()) return work;
  WorkingSet head;
  head.logits = stage.tensors.logits;
  return head;
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
  if (!stage.first) step.work.fixed = stage.tensors.boundary * 2;
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
///   fits  = phi * allocated + context <= usable;   tight = reserved + context > usable while it fits
///   total = reserved + context, cut at what is usable (the allocator then frees its cache), but never below what is required
void judge(StageMemory& memory, const SoftwareProfile& software, const Device& device) {
  memory.context = device.context + software.extra_context;
  memory.usable = device.usable_memory;
  memory.required = software.fragmentation * memory.allocated + memory.context;
  const Bytes wanted = memory.reserved + memory.context;
  memory.total = std::min(wanted, std::max(memory.usable, memory.required));
  memory.verdict = memory.required > memory.usable ? MemoryVerdict::does_not_fit
                   : wanted > memory.usable        ? MemoryVerdict::tight
                                                   : MemoryVerdict::fits;
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
  memory.parameters = stage.parameters;
  memory.microbatches_in_flight = inputs.in_flight[id.index()] / chunks;
  memory.activation_per_microbatch = each;
  write_lines(memory,
              first_step ? first_maximum(stage, all) : steady_maximum(stage, all, with_gradients));
  const Bytes pool = first_step ? first_pool(stage, all) : steady_pool(stage, with_gradients);
  memory.codec = codec_bytes(stage.model, stage.plan, stage.software, id).total();
  memory.buffers += memory.codec;
  memory.allocated += memory.codec;
  memory.pool = std::max(pool + memory.codec, memory.allocated);
  // Nothing has been recycled yet in the first step: no slack.
  memory.reserved = memory.pool * (first_step ? 1 : inputs.software->allocator_slack);
  correct(memory, inputs);
  judge(memory, *inputs.software, *inputs.device_of_stage[id.index()]);
  WT_ENSURE(memory.total > Bytes{});
  return memory;
}

}  // namespace windtunnel
