#include "memory/memory_account.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/contracts.hpp"
#include "cost/end_of_iteration.hpp"
#include "cost/stage_cost.hpp"
#include "memory/memory_advice.hpp"
#include "memory/memory_correction.hpp"
#include "plan/gradient_reduction.hpp"

namespace windtunnel {
namespace {

void expect_complete(const MemoryInputs& inputs) {
  WT_EXPECT(inputs.model != nullptr && inputs.plan != nullptr && inputs.software != nullptr);
  const auto stages = static_cast<std::size_t>(inputs.plan->parallel.pipeline);
  WT_EXPECT(stages > 0 && inputs.plan->stage_layers.size() == stages);
  WT_EXPECT(inputs.device_of_stage.size() == stages);
  WT_EXPECT(inputs.in_flight.size() == stages);
  WT_EXPECT(inputs.in_flight_with_gradients.size() == stages);
}

/// By how much a stage misses; negative: its room.
Bytes miss(const StageMemory& stage) { return stage.required - stage.usable; }

}  // namespace

const char* name_of(MemoryVerdict verdict) {
  switch (verdict) {
    case MemoryVerdict::fits:
      return "fits";
    case MemoryVerdict::at_risk:
      return "at_risk";
    case MemoryVerdict::lower_bound:
      return "lower_bound";
    case MemoryVerdict::does_not_fit:
      return "does_not_fit";
  }
  WT_UNREACHABLE();
}

MemoryAccount account_without_advice(const MemoryInputs& inputs) {
  expect_complete(inputs);
  MemoryAccount account;
  for (int stage = 0; stage < inputs.plan->parallel.pipeline; ++stage) {
    account.stages.push_back(account_stage(inputs, StageId{stage}));
    account.max_total = std::max(account.max_total, account.stages.back().total);
    account.verdict = std::max(account.verdict, account.stages.back().verdict);
  }
  const StageMemory& worst = *std::max_element(
      account.stages.begin(), account.stages.end(),
      [](const StageMemory& a, const StageMemory& b) { return miss(a) < miss(b); });
  account.worst_stage = worst.stage;
  account.capacity = inputs.device_of_stage[worst.stage.index()]->memory_capacity;
  account.fits = account.verdict != MemoryVerdict::does_not_fit;
  return account;
}

MemoryAccount account_memory(const MemoryInputs& inputs) {
  MemoryAccount account = account_without_advice(inputs);
  if (!account.fits)
    account.advice = memory_advice(inputs, account.stages[account.worst_stage.index()]);
  return account;
}

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

/// What quantised formats add to a stage's weights: their casts by rows and by columns, beside the bf16 weights or in
/// their place. ZeRO 3 has them of the layer that computes only, which is not counted [assumed].
Bytes cast_weights(const Transformer& model, const Plan& plan, const SoftwareProfile& software,
                   StageId stage, double experts) {
  const Precision precision = plan.training.precision;
  if (!is_quantized(precision) || plan.parallel.zero_stage == 3) return {};
  const Bytes kept = keeps_operands(plan, software) ? element_size(precision) : Bytes{};
  return (operand_size(precision) * 2.0 - kept) *
         (stage_matrix_parameters(model, plan, stage) + experts);
}

Stage stage_of(const MemoryInputs& inputs, StageId id) {
  const Plan& plan = *inputs.plan;
  const ChunkRole role = stage_role(*inputs.model, plan, id);
  const ChunkOperations& operations = operations_of(inputs, role, id);
  const ParameterCounts parameters = count_parameters(operations.at(Direction::forward));
  StageStates states = stage_states(plan.training, *inputs.software, parameters);
  states.weights += cast_weights(*inputs.model, plan, *inputs.software, id, parameters.experts);
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

/// live = max(work, [last] logits + fixed work): the head's backward pass ends before a layer's begins
/// (docs/memory.md, section 3). Fully sharded both are counted (section 7; bounds only).
WorkingSet live_set(const Stage& stage) {
  WorkingSet work = backward_working_set(stage);
  if (stage.plan.parallel.zero_stage == 3) return work;
  WorkingSet head;
  std::swap(head.logits, work.logits);
  head.fixed = stage.software.fixed_work;
  return head.sum() > work.sum() ? head : work;
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

namespace {

constexpr double half_bytes = 2;    ///< of an fp16 or bf16 value
constexpr double single_bytes = 4;  ///< of an fp32 value
constexpr double adam_moments = 2;
constexpr double sgd_moments = 1;  ///< momentum; plain SGD without it would need none [assumed]

bool is_half(Precision precision) {
  return precision == Precision::fp16 || base_precision(precision) == Precision::bf16;
}

double moment_bytes(Optimizer optimizer) {
  return single_bytes * (optimizer == Optimizer::adam ? adam_moments : sgd_moments);
}

/// Training in fp32 or tf32 [assumed]: weights 4, gradients 4, Adam 8; the weights are their own
/// master.
StateBytes single_precision_states() {
  return {.weights = single_bytes,
          .gradients = single_bytes,
          .stale_gradients = 0,
          .optimizer = single_bytes * adam_moments,
          .step_temporary = 0,
          .gradients_freed_each_step = false};
}

/// Stack D: gradients accumulate in a contiguous fp32 buffer that stays, so the step makes no fp32
/// copy of them.
StateBytes with_single_gradients(StateBytes states) {
  states.gradients = std::max(states.gradients, single_bytes);
  states.stale_gradients = 0;
  states.step_temporary = 0;
  states.gradients_freed_each_step = false;
  return states;
}

/// Stack C: gradients stay in half precision and the step makes an fp32 copy of them.
StateBytes with_half_gradients(StateBytes states) {
  states.gradients = std::min(states.gradients, half_bytes);
  states.stale_gradients = 0;
  states.step_temporary = single_bytes;
  return states;
}

StateBytes half_precision_states(const Training& training, const SoftwareProfile& software) {
  const StateBytes states =
      training.precision == Precision::fp16 ? software.states_fp16 : software.states_bf16;
  const bool asks_single = training.gradient_type == GradientType::fp32;
  const bool has_single = software.gradients_of(training.precision) == GradientType::fp32;
  if (asks_single == has_single) return states;
  return asks_single ? with_single_gradients(states) : with_half_gradients(states);
}

/// The fp32 gradients that the first step makes. A stack that keeps stale gradients (stack A) keeps
/// a copy of the live ones and these; another makes them for the step alone.
double main_gradient_bytes(const StateBytes& states) {
  return states.stale_gradients > 0 ? std::max(states.stale_gradients - states.gradients, 0.0)
                                    : states.step_temporary;
}

}  // namespace

StateBytes state_bytes(const Training& training, const SoftwareProfile& software) {
  StateBytes states = is_half(training.precision) ? half_precision_states(training, software)
                                                  : single_precision_states();
  // Profiles state Adam's bytes.
  states.optimizer += moment_bytes(training.optimizer) - moment_bytes(Optimizer::adam);
  return states;
}

StageStates stage_states(const Training& training, const SoftwareProfile& software,
                         const ParameterCounts& parameters) {
  const StateBytes bytes = state_bytes(training, software);
  const Bytes weights{parameters.weights}, gradients{parameters.gradients},
      optimizer{parameters.optimizer};  // one byte a parameter
  const double freed =
      bytes.gradients_freed_each_step ? std::min(bytes.gradients, half_bytes) : 0.0;
  return {.weights = bytes.weights * weights,
          .live_gradients = bytes.gradients * gradients,
          .stale_gradients = bytes.stale_gradients * gradients,
          .optimizer = bytes.optimizer * optimizer,
          .step_temporary = bytes.step_temporary * optimizer,
          .freed_gradients = freed * gradients,
          .moments = moment_bytes(training.optimizer) * optimizer,
          .main_gradients = main_gradient_bytes(bytes) * optimizer};
}

void CodecBytes::add(const Operation& operation, double times) {
  const KeptByCodec& kept = operation.held.codec;
  KeptByCodec& sum = of(operation);
  sum.residuals += kept.residuals * times;
  sum.factors += kept.factors * times;
  sum.buffers = std::max(sum.buffers, kept.buffers);
}

void CodecBytes::add(const PassOperations& pass) {
  for (const Operation& operation : pass.before) add(operation);
  for (const Operation& operation : pass.layer) add(operation, pass.layers);
  for (const Operation& operation : pass.after) add(operation);
}

void CodecBytes::add_message(const Operation& message, bool sends, bool receives) {
  const KeptByCodec& kept = message.held.codec;
  const double ends = (sends ? 1 : 0) + (receives ? 1 : 0);
  KeptByCodec& sum = of(message);
  sum.factors += kept.factors * ends;
  sum.buffers += kept.buffers * ends;
  if (sends) sum.residuals += kept.residuals;
}

Bytes CodecBytes::total() const {
  KeptByCodec sum;
  for (const KeptByCodec& kept : by_traffic_) {
    sum.residuals += kept.residuals;
    sum.factors += kept.factors;
    sum.buffers += kept.buffers;
  }
  return sum.total();
}

}  // namespace windtunnel
