#include "memory/memory_account.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>

#include "core/contracts.hpp"
#include "cost/end_of_iteration.hpp"
#include "cost/muon.hpp"
#include "cost/stage_cost.hpp"
#include "memory/eager_step.hpp"
#include "memory/memory_advice.hpp"
#include "memory/memory_correction.hpp"
#include "plan/plan.hpp"

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

/// Adds what no operation holds.
void hold(std::vector<HeldTensor>& tensors, HeldKind kind, Bytes bytes, double count,
          Moments held) {
  tensors.push_back({kind, Label::whole_pass, bytes, count, held});
}

}  // namespace

MemoryAccount account_memory(const MemoryInputs& inputs) {
  expect_complete(inputs);
  MemoryAccount account;
  for (int stage = 0; stage < inputs.plan->parallel.pipeline; ++stage) {
    account.stages.push_back(account_stage(inputs, StageId{stage}));
    account.max_total = std::max(account.max_total, account.stages.back().total);
    account.verdict = std::max(account.verdict, account.stages.back().verdict);
  }
  account.fits = account.verdict != MemoryVerdict::does_not_fit;
  const auto miss = [&](const StageMemory& stage) {
    return (account.fits ? stage.total : stage.required) - stage.usable;
  };
  const StageMemory& worst = *std::max_element(account.stages.begin(), account.stages.end(),
                                               [&](const StageMemory& a, const StageMemory& b) {
                                                 return std::tuple(a.verdict, miss(a), a.required) <
                                                        std::tuple(b.verdict, miss(b), b.required);
                                               });
  account.worst_stage = worst.stage;
  account.capacity = inputs.device_of_stage[worst.stage.index()]->memory_capacity;
  account.usable = worst.usable;
  return account;
}

namespace {

/// A stage, and the operations its memory is added up from: those of all its chunks as if they were one.
struct Stage {
  const Plan& plan;
  const SoftwareProfile& software;
  StageId id;
  ChunkRole role;
  const ChunkOperations& operations;
  ParameterCounts parameters;
};

constexpr Moments always{Moment::backward,      Moment::head,      Moment::first_backward,
                         Moment::first_head,    Moment::edges,     Moment::step,
                         Moment::pool_backward, Moment::pool_head, Moment::pool_edges,
                         Moment::pool_step};
constexpr Moments of_layer{Moment::backward, Moment::first_backward, Moment::pool_backward};
constexpr Moments of_head{Moment::head, Moment::first_head, Moment::pool_head};
constexpr Moments of_edges{Moment::edges, Moment::pool_edges};
constexpr Moments of_step{Moment::step, Moment::pool_step};
constexpr Moments of_pool = pool_moments;
constexpr Moments of_passes{Moment::backward,   Moment::head,          Moment::first_backward,
                            Moment::first_head, Moment::pool_backward, Moment::pool_head};

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

/// Counts the casts of linear weights for products in a quantised format, which a stack keeps in addition to the bf16 weights, or as the only
/// weights. ZeRO 3 has them of the layer that computes only, which is not counted [assumed].
void add_cast_weights(std::vector<HeldTensor>& tensors, const Transformer& model,
                      const Stage& stage, const Device& device) {
  const Precision precision = stage.plan.training.precision;
  if (!is_quantized(precision) || stage.plan.parallel.zero_stage == 3) return;
  const double parameters =
      stage_matrix_parameters(model, stage.plan, stage.id) + stage.parameters.experts;
  const Bytes casts =
      operand_size(precision) * operand_copies(stage.plan, stage.software, device) * parameters;
  if (!keeps_operands(stage.plan, stage.software)) {
    hold(tensors, HeldKind::cast_weights, casts, parameters, always);
    return;
  }
  const HeldKind kind =
      stage.plan.training.lora.is_used() ? HeldKind::frozen_weights : HeldKind::weights;
  // Of frozen weights the last are the matrices.
  const auto found = std::find_if(tensors.rbegin(), tensors.rend(),
                                  [kind](const HeldTensor& tensor) { return tensor.kind == kind; });
  if (found != tensors.rend()) found->bytes += casts - element_size(precision) * parameters;
}

Stage stage_of(const MemoryInputs& inputs, StageId id) {
  const Plan& plan = *inputs.plan;
  const ChunkRole role = stage_role(*inputs.model, plan, id);
  const ChunkOperations& operations = operations_of(inputs, role, id);
  return {plan, *inputs.software, id,
          role, operations,       count_parameters(operations.at(Direction::forward))};
}

/// A layer's output.
Bytes boundary(const Stage& stage) { return stage.operations.message.held.at(Kept::tensors).sum(); }

/// A kind of memory that operations keep, and its name on the list.
struct KeptKind {
  Kept kept;
  HeldKind kind;
  Moments held;
};

Label label_of(const Operation& operation, HeldKind kind) {
  const bool is_edge = operation.label == Label::embedding || operation.label == Label::head;
  if (kind == HeldKind::reloaded) return Label::whole_pass;
  if (kind == HeldKind::gathered || kind == HeldKind::prefetched)
    return is_edge ? Label::gather_edges : Label::gather_layer;
  if (kind == HeldKind::scattered || kind == HeldKind::reduced)
    return is_edge ? Label::scatter_edges : Label::scatter_layer;
  return operation.label;
}

void add_kept(std::vector<HeldTensor>& tensors, const std::vector<Operation>& operations,
              double times, const KeptKind& as) {
  for (const Operation& operation : operations) {
    const Bytes bytes = operation.held.at(as.kept).sum() * times;
    if (bytes > Bytes{})
      tensors.push_back(
          {as.kind, label_of(operation, as.kind), bytes, times * operation.share, as.held});
    // A first stage sends no gradient back: its embedding takes away that of the layer's input.
    if (bytes < Bytes{}) tensors.back().bytes += bytes;
  }
}

/// Adds the tensors that a pass with `layers` layers keeps.
void add_kept(std::vector<HeldTensor>& tensors, const PassOperations& pass, int layers,
              const KeptKind& as) {
  add_kept(tensors, pass.layer, layers, as);
  add_kept(tensors, pass.before, 1, as);
  add_kept(tensors, pass.after, 1, as);
}

/// One microbatch in flight:  l_i kept + [not last] 2 sbh + [first] sbh.  The middle term is the
/// stage's output, one for each model chunk that hands it to another stage, kept until its backward
/// pass, unless the stack frees it when it is sent.
std::vector<HeldTensor> tensors_of_microbatch(const Stage& stage) {
  const PassOperations& forward = stage.operations.at(Direction::forward);
  std::vector<HeldTensor> tensors;
  add_kept(tensors, forward, stage.role.layers, {Kept::tensors, HeldKind::saved, {}});
  add_kept(tensors, forward, stage.role.layers, {Kept::scores, HeldKind::saved_scores, {}});
  const int outputs =
      stage.software.frees_outputs ? 0 : stage.plan.chunk_map().num_outputs(stage.id);
  hold(tensors, HeldKind::outputs, boundary(stage) * outputs, 1.0 * outputs, {});
  return tensors;
}

/// Adds the activations of one microbatch `in_flight` times.
void add_activations(std::vector<HeldTensor>& tensors, std::vector<HeldTensor> of_microbatch,
                     double in_flight, Moments held) {
  for (HeldTensor& tensor : of_microbatch) {
    tensor.bytes *= in_flight;
    tensor.count *= in_flight;
    tensor.held = held;
    tensors.push_back(tensor);
  }
}

/// The largest of those of a layer; fully sharded, those of a layer and of embedding and head.
void add_weight_gradients(std::vector<HeldTensor>& tensors, const Stage& stage) {
  const PassOperations& backward = stage.operations.at(Direction::backward);
  if (stage.plan.parallel.zero_stage == 3)
    return add_kept(tensors, backward, 1, {Kept::weight_gradient, HeldKind::scattered, of_layer});
  const auto gradient = [](const Operation& operation) {
    return operation.held.at(Kept::weight_gradient).sum();
  };
  const auto largest = std::max_element(
      backward.layer.begin(), backward.layer.end(),
      [&](const Operation& a, const Operation& b) { return gradient(a) < gradient(b); });
  if (largest != backward.layer.end())
    add_kept(tensors, {*largest}, 1, {Kept::weight_gradient, HeldKind::weight_gradient, of_layer});
}

bool is_fully_sharded(const Stage& stage) { return stage.plan.parallel.zero_stage == 3; }

/// True if the stack's buffers for sharded parameters are known, and not only a lower bound.
bool counts_shards(const Stage& stage) {
  return stage.software.sharded_parameters != ShardedParameters::uncounted;
}

/// Parameters of other ranks and gradients on their way to them. Embedding and head are gathered throughout the passes, a layer's parameters
/// during its own backward pass, before which the last layer's are still there. Pools: the blocks of a stream serve no other one. Gathers
/// that are copied out have a stream of their own (section 7), in which the buffers of later layers fit into that of embedding and head.
void add_shards(std::vector<HeldTensor>& tensors, const Stage& stage) {
  const PassOperations& backward = stage.operations.at(Direction::backward);
  const PassOperations layer{{}, backward.layer, {}, 1},
      edges{backward.before, {}, backward.after, 1};
  constexpr Moments of_running{Moment::backward, Moment::first_backward};
  const bool copies = stage.software.sharded_parameters == ShardedParameters::each;
  add_kept(tensors, layer, 1, {Kept::gathered, HeldKind::gathered, of_passes});
  add_kept(tensors, layer, 1,
           {Kept::prefetched, HeldKind::prefetched, copies ? of_running : of_layer});
  add_kept(tensors, layer, 1, {Kept::reduced, HeldKind::reduced, of_layer});
  add_kept(tensors, edges, 1, {Kept::gathered, HeldKind::gathered, of_passes});
  add_kept(tensors, edges, 1, {Kept::gathered, HeldKind::gathered, of_edges});
  add_kept(tensors, edges, 1, {Kept::reduced, HeldKind::reduced, of_edges});
  if (!copies) return;
  const auto sum = [](const std::vector<Operation>& operations) {
    Bytes gathered{};
    for (const Operation& operation : operations)
      gathered += operation.held.at(Kept::gathered).sum();
    return gathered;
  };
  Bytes unit{};
  for (const Operation& operation : layer.layer) unit += operation.held.at(Kept::unit).sum();
  const Bytes of_edges_alone = sum(edges.before) + sum(edges.after);
  tensors.push_back({HeldKind::prefetched, Label::gather_layer,
                     unit + std::max(unit, of_edges_alone), 1, of_pool});
}

/// True if the gradients of all layers' inputs stay until the backward pass ends, the two that pass through a layer among them, and no
/// input is freed before (SoftwareProfile::reentrant_checkpoints).
bool keeps_leaves(const Stage& stage) {
  return stage.software.reentrant_checkpoints && !stage.software.flattens_adapters &&
         stage.role.layers > 2 && stage.software.sharded_parameters == ShardedParameters::flat &&
         stage.plan.training.lora.is_used() && stage.plan.training.recompute == Recompute::full;
}

/// Backward pass of one layer, and of the head (docs/memory.md, sections 3 and 7):  live = max(work, [last] logits + fixed work), as the
/// head's backward pass ends before a layer's begins. Where shards are not counted both are (a lower bound). Gradients pass through a stage
/// without layers too.
void add_backward(std::vector<HeldTensor>& tensors, const Stage& stage) {
  const PassOperations& backward = stage.operations.at(Direction::backward);
  if (stage.role.layers > 0) {
    add_kept(tensors, backward, 1, {Kept::tensors, HeldKind::recomputed, of_layer});
    add_weight_gradients(tensors, stage);
    add_kept(tensors, backward, 1, {Kept::scores, HeldKind::scores, of_layer});
  }
  const bool with_layer = is_fully_sharded(stage) && !counts_shards(stage);
  add_kept(tensors, backward, 1,
           {Kept::logits, HeldKind::logits, with_layer ? of_passes : of_head});
  add_kept(tensors, backward, 1, {Kept::head_input, HeldKind::head_input, of_head});
  hold(tensors, HeldKind::work_space, stage.software.fixed_work, 1, of_passes);
  add_kept(tensors, backward, 1, {Kept::passing, HeldKind::passing, of_layer});
  add_kept(tensors, backward, 1, {Kept::reloaded, HeldKind::reloaded, of_layer});
  if (!is_fully_sharded(stage)) return;
  if (keeps_leaves(stage))
    hold(tensors, HeldKind::passing, boundary(stage) * (stage.role.layers - 2),
         stage.role.layers - 2, of_layer);
  if (counts_shards(stage)) return add_shards(tensors, stage);
  add_kept(tensors, backward, 1, {Kept::gathered, HeldKind::gathered, of_layer});
}

/// Memory outside the allocator; a GPU alone has no buffers for communication.
Bytes context_of(const MemoryInputs& inputs, const Device& device) {
  return inputs.plan->num_ranks() > 1 ? device.context + inputs.software->extra_context
                                      : device.context;
}

/// Verdict and total (docs/memory.md, sections 3 and 5):
///   fits  = phi * allocated + context <= usable, and so does what is reserved where the allocator is simulated;   at risk = (1 + scatter) reserved + context > usable, while it fits
///   total = reserved + context, cut at what is usable (the allocator then frees its cache), but never below what is required
void judge(StageMemory& memory, const MemoryInputs& inputs, const Device& device) {
  const SoftwareProfile& software = *inputs.software;
  const Parallel& parallel = inputs.plan->parallel;
  memory.context = context_of(inputs, device);
  memory.usable = device.usable_memory;
  memory.required = software.fragmentation * memory.allocated + memory.context;
  const Bytes wanted = memory.reserved + memory.context;
  if (memory.is_simulated && wanted > memory.usable)
    memory.required = std::max(memory.required, wanted);
  memory.total = std::min(wanted, std::max(memory.usable, memory.required));
  memory.is_tight =
      (1 + software.reserved_scatter) * memory.reserved + memory.context > memory.usable;
  const bool is_trained = inputs.correction != nullptr && inputs.correction->is_better();
  if (memory.required > memory.usable)
    memory.verdict = MemoryVerdict::does_not_fit;
  else if (parallel.zero_stage == 3 && parallel.replicas() > 1 && !is_trained &&
           software.sharded_parameters == ShardedParameters::uncounted &&
           software.live_parameters == 0)
    memory.verdict = MemoryVerdict::lower_bound;
  else if (memory.is_tight)
    memory.verdict = MemoryVerdict::at_risk;
}

/// Operations of a rank of the stage once per iteration, and in passes that reduce gradients.
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

/// Bytes that compression keeps on one rank all through an iteration, added up from what its operations keep by class of traffic. Collectives
/// of a class take turns with the largest of their buffers.
class CodecBytes {
 public:
  void add(const Operation& operation, double times = 1) {
    const KeptByCodec& kept = operation.held.codec;
    KeptByCodec& sum = sum_for(operation);
    sum.residuals += kept.residuals * times;
    sum.factors += kept.factors * times;
    sum.buffers = std::max(sum.buffers, kept.buffers);
  }
  void add(const PassOperations& pass) {
    for (const Operation& operation : pass.before) add(operation);
    for (const Operation& operation : pass.layer) add(operation, pass.layers);
    for (const Operation& operation : pass.after) add(operation);
  }
  /// At each end that the rank is of a message: residuals only where it sends.
  void add_message(const Operation& message, bool sends, bool receives) {
    const KeptByCodec& kept = message.held.codec;
    const double ends = (sends ? 1 : 0) + (receives ? 1 : 0);
    KeptByCodec& sum = sum_for(message);
    sum.factors += kept.factors * ends;
    sum.buffers += kept.buffers * ends;
    if (sends) sum.residuals += kept.residuals;
  }
  void add_to(std::vector<HeldTensor>& tensors) const {
    for (const auto& [of, kept] : by_traffic_)
      tensors.push_back({HeldKind::codec, of, kept.total(), 1, always});
  }

 private:
  KeptByCodec& sum_for(const Operation& operation) {
    auto& [of, sum] = by_traffic_[row_of(operation.label).traffic];
    if (operation.held.codec.total() > Bytes{}) of = operation.label;
    return sum;
  }
  /// The last operation of the class that is compressed, and the sum.
  EnumArray<Traffic, std::pair<Label, KeptByCodec>> by_traffic_{};
};

void add_codecs(std::vector<HeldTensor>& tensors, const MemoryInputs& inputs, const Stage& stage) {
  if (!has_codecs(stage.plan.compression)) return;
  const ChunkMap map = stage.plan.chunk_map();
  CodecBytes bytes;
  const bool has_next = !map.stages_behind(stage.id).empty(),
             has_previous = !map.stages_before(stage.id).empty();
  bytes.add_message(stage.operations.message, has_next, has_previous);
  bytes.add_message(stage.operations.gradient_message, has_previous, has_next);
  for (const Direction direction : {Direction::forward, Direction::backward})
    bytes.add(stage.operations.at(direction));
  for (const Operation& operation : end_of_stage(inputs, stage)) bytes.add(operation);
  bytes.add_to(tensors);
}

/// Adds Muon's buffers for the matrix that it orthogonalises; of matrices in four bits, the largest, cast for its product, and the scales of
/// what other ranks hold.
void add_optimizer_work(std::vector<HeldTensor>& tensors, const MemoryInputs& inputs,
                        const Stage& stage) {
  const Training& training = stage.plan.training;
  if (training.optimizer == Optimizer::muon)
    hold(tensors, HeldKind::orthogonalisation,
         orthogonalisation_memory(muon_matrices(*inputs.model, stage.plan, stage.id)), 1, of_step);
  if (training.lora.frozen_type == FrozenType::as_passes || stage.role.layers == 0) return;
  const Transformer& model = *inputs.model;
  const double most = std::max(model.qkv_width(), model.mlp_input_width()) * model.hidden /
                      stage.plan.parallel.tensor;
  hold(tensors, HeldKind::cast_weights, element_size(training.precision) * most, 1, of_layer);
  if (stage.plan.parallel.zero_stage < 3) return;
  const double of_others =
      stage.parameters.frozen_matrices * (sharding_group_size(stage.plan.parallel) - 1);
  hold(tensors, HeldKind::frozen_weights, Bytes{frozen_scale_size(training)} * of_others, of_others,
       always);
}

/// A layer's input on all ranks of a tensor group.
Bytes whole_sequence(const Stage& stage, const Transformer& model) {
  return activation_size(model, layer_shape(stage.plan, stage.software));
}

/// Adds copies made for exchanges: buckets of gradients if replicas share no states, else the weights that the step gathers; and whole
/// sequences.
void add_copies(std::vector<HeldTensor>& tensors, const MemoryInputs& inputs, const Stage& stage) {
  const Parallel& parallel = stage.plan.parallel;
  const StateBytes bytes = state_bytes(stage.plan.training, stage.software);
  const ParameterCounts& parameters = stage.parameters;
  if (parallel.replicas() > 1 && parallel.zero_stage == 0)
    hold(tensors, HeldKind::buckets, Bytes{bytes.buckets * parameters.gradients},
         parameters.gradients, always);
  const double copied = bytes.gathered_copies * (parameters.weights - parameters.frozen_weights) +
                        parameters.optimizer;
  if (parallel.replicas() > 1 && parallel.zero_stage > 0 && bytes.gathered_copies > 0)
    hold(tensors, HeldKind::gathered_weights, Bytes{bytes.weights * copied}, copied, of_step);
  if (parallel.tensor == 1) return;
  hold(tensors, HeldKind::sequences,
       whole_sequence(stage, *inputs.model) * stage.software.gather_buffers,
       1.0 * stage.software.gather_buffers, always);
  // A block from which the head's input was copied is too small for logits.
  if (parallel.sequence_parallel && stage.software.copies_tensor_collectives && stage.role.last &&
      !parallel.async_tensor_parallel)
    hold(tensors, HeldKind::sequences, whole_sequence(stage, *inputs.model), 1,
         {Moment::pool_head});
}

Bytes sum_of(const std::vector<HeldTensor>& tensors) {
  Bytes sum{};
  for (const HeldTensor& tensor : tensors) sum += tensor.bytes;
  return sum;
}

/// Gradients of one backward pass take the place of the activations that the pass frees, layer by layer: no more than what they have beyond
/// these is held at once with all activations.
void free_as_gradients_come(std::vector<HeldTensor>& tensors,
                            const std::vector<HeldTensor>& of_microbatch) {
  const Bytes freed = sum_of(of_microbatch);
  for (HeldTensor& tensor : tensors)
    if (tensor.kind == HeldKind::pass_gradients)
      tensor.bytes = std::max(tensor.bytes - freed, Bytes{});
}

/// Parameters of the layers, before they are shared out.
ParameterCounts layer_parameters(const Stage& stage) {
  return count_parameters(
      {{}, stage.operations.at(Direction::forward).layer, {}, stage.role.layers});
}

/// With no_sync() gradients are whole from the end of the first backward pass on: those of FSDP 1 in the type of the passes
/// (_use_unsharded_grad_views in torch/distributed/fsdp/_flat_param.py, PyTorch 2.4), those of FSDP 2 in the type in which they are reduced
/// (to_accumulated_grad_if_needed in torch/distributed/fsdp/_fully_shard/_fsdp_param.py, PyTorch 2.8). The step has shards.
void keep_whole_gradients(std::vector<HeldTensor>& tensors, const Stage& stage) {
  for (HeldTensor& tensor : tensors)
    if (tensor.kind == HeldKind::gradients) tensor.held = of_step;
  const Training& training = stage.plan.training;
  const Bytes each = stage.software.sharded_parameters == ShardedParameters::flat
                         ? element_size(training.precision)
                         : element_size(training.gradient_type);
  const double parameters = reduces_frozen(stage.plan, stage.software) ? layer_parameters(stage).all
                                                                       : stage.parameters.trained();
  hold(tensors, HeldKind::gradients, each * parameters, parameters,
       {Moment::backward, Moment::head, Moment::edges, Moment::pool_backward, Moment::pool_head,
        Moment::pool_edges});
}

/// Shards of the gradients of frozen weights that are reduced with those of adapters: _saved_grad_shard of the flat parameter
/// (torch/distributed/fsdp/_runtime_utils.py, PyTorch 2.4).
void hold_frozen_gradients(std::vector<HeldTensor>& tensors, const Stage& stage) {
  const double frozen = layer_parameters(stage).frozen / sharding_group_size(stage.plan.parallel);
  const StateBytes bytes = state_bytes(stage.plan.training, stage.software);
  hold(tensors, HeldKind::gradients, Bytes{bytes.gradients} * frozen, frozen, always);
}

/// Of one microbatch. A fully sharded stack drops the gradients of the last step, and makes those of a unit as it scatters them. Those of other
/// stacks that are freed come as the backward pass frees activations, layer by layer: while the first layer runs there are those of all
/// others, and activations of that one alone.
void make_gradients_once(std::vector<HeldTensor>& tensors, const Stage& stage,
                         const std::vector<HeldTensor>& of_microbatch) {
  const Bytes freed = sum_of(of_microbatch);
  Bytes made{};
  double parameters = 0;
  for (HeldTensor& tensor : tensors) {
    if (tensor.kind != HeldKind::gradients ||
        !(is_fully_sharded(stage) ? counts_shards(stage)
                                  : !tensor.held.has(Moment::first_backward)))
      continue;
    tensor.held = {Moment::edges,     Moment::step,       Moment::pool_backward,
                   Moment::pool_head, Moment::pool_edges, Moment::pool_step};
    if (is_fully_sharded(stage)) continue;
    made += tensor.bytes;
    parameters += tensor.count;
  }
  if (stage.role.layers == 0 || made <= freed) return;
  const double others = 1 - 1.0 / stage.role.layers;
  hold(tensors, HeldKind::gradients, (made - freed) * others, parameters * others,
       {Moment::backward, Moment::first_backward});
}

/// All that a rank of the stage holds, and when (docs/memory.md, section 3). In a steady state the first backward pass has the most
/// microbatches in flight, and frees one before a later one holds gradients as well. Of the first step one pass is counted, with all of
/// them in flight; the messages of the stage are still there in its step, and no block of the allocator has been used again.
std::vector<HeldTensor> tensors_of(const MemoryInputs& inputs, const Stage& stage,
                                   const std::vector<HeldTensor>& of_microbatch) {
  std::vector<HeldTensor> tensors =
      state_tensors(stage.plan.training, stage.software, stage.parameters, inputs.reading);
  if (reduces_frozen(stage.plan, stage.software)) hold_frozen_gradients(tensors, stage);
  if (stage.plan.microbatches == 1) make_gradients_once(tensors, stage, of_microbatch);
  if (stage.plan.parallel.no_sync) keep_whole_gradients(tensors, stage);
  free_as_gradients_come(tensors, of_microbatch);
  add_cast_weights(tensors, *inputs.model, stage, *inputs.device_of_stage[stage.id.index()]);
  const double all = inputs.in_flight[stage.id.index()],
               with_gradients = inputs.in_flight_with_gradients[stage.id.index()];
  if (inputs.reading == MemoryReading::steady_state) {
    add_activations(tensors, of_microbatch, with_gradients,
                    {Moment::backward, Moment::head, Moment::pool_backward, Moment::pool_head,
                     Moment::pool_step});
    add_activations(tensors, of_microbatch, all, {Moment::first_backward, Moment::first_head});
  } else {
    add_activations(tensors, of_microbatch, all, of_passes);
    if (!stage.role.first)
      hold(tensors, HeldKind::messages, boundary(stage) * 2, 2, {Moment::step});
  }
  add_backward(tensors, stage);
  add_optimizer_work(tensors, inputs, stage);
  add_codecs(tensors, inputs, stage);
  add_copies(tensors, inputs, stage);
  hold(tensors, HeldKind::workspaces, stage.software.workspaces, 1, always);
  std::erase_if(tensors, [](const HeldTensor& tensor) { return !(tensor.bytes > Bytes{}); });
  return tensors;
}

/// Lines and their sum, at the peak.
void add_up(StageMemory& memory) {
  constexpr EnumArray<MemoryLine, Bytes StageMemory::*> lines{
      &StageMemory::weights, &StageMemory::gradients, &StageMemory::optimizer,
      &StageMemory::activations, &StageMemory::buffers};
  memory.peak = largest_of(memory.tensors, allocated_moments);
  memory.allocated = sum_at(memory.tensors, memory.peak);
  for (const auto line : lines) memory.*line = Bytes{};
  for (const HeldKind kind : enumerators<HeldKind>())
    memory.*lines[line_of(kind)] += memory.at_peak(kind);
}

/// Multiplies all tensors by the factor of a trained correction, if it speaks; what it adds stands among the buffers. Returns the factor.
double correct(StageMemory& memory, const MemoryInputs& inputs) {
  if (inputs.correction == nullptr || !inputs.correction->is_better()) return 1;
  const double factor = correction_factor(*inputs.correction, memory_features(inputs, memory));
  hold(memory.tensors, HeldKind::correction, memory.allocated * (factor - 1), 1, always);
  add_up(memory);
  memory.pool *= factor;
  return factor;
}

/// Computes the memory that the allocator reserves for corrected tensors. A step whose tensors are all `factor` times as large fits into a
/// device as the step of the account fits into one that is smaller by as much.
void reserve(StageMemory& memory, const MemoryInputs& inputs, const Stage& stage, double factor) {
  const Device& device = *inputs.device_of_stage[stage.id.index()];
  const SoftwareProfile& software = stage.software;
  memory.reserved = memory.reserved_in_step = memory.pool;
  // Nothing has been recycled yet in the first step: no slack.
  if (inputs.reading == MemoryReading::first_step) return;
  const Bytes capacity = device.usable_memory - context_of(inputs, device);
  const EagerStage eager{
      *inputs.model,
      stage.plan,
      software,
      stage.role,
      static_cast<int>(std::ceil(inputs.in_flight[stage.id.index()])),
      !inputs.is_launch_bound.empty() && inputs.is_launch_bound[stage.id.index()],
      capacity / factor};
  const bool may_fit = software.fragmentation * memory.allocated <= capacity;
  if (may_fit && knows_allocations(eager)) {
    const EagerReserved simulated = reserved_by_eager_step(eager);
    memory.reserved = std::max(simulated.most * factor, memory.allocated);
    memory.reserved_in_step = simulated.in_step * factor;
    memory.is_simulated = true;
    return;
  }
  memory.reserved = memory.reserved_in_step = memory.pool * software.allocator_slack;
}

/// Without what the allocator reserves.
StageMemory add_up_stage(const MemoryInputs& inputs, const Stage& stage) {
  StageMemory memory;
  memory.stage = stage.id;
  memory.parameters = stage.parameters.all;
  memory.microbatches_in_flight = inputs.in_flight[stage.id.index()];
  const std::vector<HeldTensor> of_microbatch = tensors_of_microbatch(stage);
  memory.activation_per_microbatch = sum_of(of_microbatch);
  memory.tensors = tensors_of(inputs, stage, of_microbatch);
  add_up(memory);
  memory.pool =
      std::max(memory.allocated, sum_at(memory.tensors, largest_of(memory.tensors, pool_moments)));
  return memory;
}

}  // namespace

Bytes StageMemory::at_peak(HeldKind kind) const {
  Bytes sum{};
  for (const HeldTensor& tensor : tensors)
    if (tensor.kind == kind && tensor.held.has(peak)) sum += tensor.bytes;
  return sum;
}

std::vector<HeldTensor> StageMemory::tensors_at_peak() const {
  std::vector<HeldTensor> found;
  for (const HeldTensor& tensor : tensors)
    if (tensor.held.has(peak)) found.push_back(tensor);
  std::stable_sort(found.begin(), found.end(),
                   [](const HeldTensor& a, const HeldTensor& b) { return a.bytes > b.bytes; });
  return found;
}

StageMemory account_stage(const MemoryInputs& inputs, StageId id) {
  const Stage stage = stage_of(inputs, id);
  StageMemory memory = add_up_stage(inputs, stage);
  reserve(memory, inputs, stage, correct(memory, inputs));
  judge(memory, inputs, *inputs.device_of_stage[id.index()]);
  WT_ENSURE(memory.total > Bytes{});
  return memory;
}

StageMemory account_required(const MemoryInputs& inputs, StageId id) {
  StageMemory memory = add_up_stage(inputs, stage_of(inputs, id));
  correct(memory, inputs);
  judge(memory, inputs, *inputs.device_of_stage[id.index()]);
  return memory;
}

namespace {

/// The fp32 gradients that the first step makes. A stack that keeps stale gradients (stack A) keeps
/// a copy of the live ones and these; another makes them for the step alone.
double main_gradient_bytes(const StateBytes& states) {
  return states.stale_gradients > 0 ? std::max(states.stale_gradients - states.gradients, 0.0)
                                    : states.step_temporary;
}

}  // namespace

std::vector<HeldTensor> state_tensors(const Training& training, const SoftwareProfile& software,
                                      const ParameterCounts& parameters, MemoryReading reading) {
  const StateBytes bytes = state_bytes(training, software);
  const bool is_first = reading == MemoryReading::first_step;
  // The first backward pass makes them.
  constexpr Moments later{Moment::backward,   Moment::head,          Moment::edges,
                          Moment::step,       Moment::pool_backward, Moment::pool_head,
                          Moment::pool_edges, Moment::pool_step},
      // Moments of the first step, whose blocks are not used again.
      made_by_step{Moment::step, Moment::pool_backward, Moment::pool_head, Moment::pool_edges,
                   Moment::pool_step};
  const double freed = bytes.gradients_freed_each_step ? bytes.gradients : 0.0;
  // The share that stays on the GPU.
  const double here = 1 - training.optimizer_offload;
  std::vector<HeldTensor> tensors;
  const auto add = [&](HeldKind kind, double each, double count, Moments held) {
    if (each > 0 && count > 0) hold(tensors, kind, Bytes{each} * count, count, held);
  };
  const double frozen_vectors = parameters.frozen_weights - parameters.frozen_matrices;
  add(HeldKind::weights, bytes.weights, parameters.weights - parameters.frozen_weights, always);
  add(HeldKind::frozen_weights, frozen_weight_size(training), frozen_vectors, always);
  add(HeldKind::frozen_weights, frozen_matrix_size(training), parameters.frozen_matrices, always);
  add(HeldKind::gradients, bytes.gradients - freed, parameters.gradients, always);
  add(HeldKind::gradients, freed, parameters.gradients, later);
  add(HeldKind::pass_gradients, bytes.pass_gradients, parameters.gradients, of_layer);
  if (!is_first)
    add(HeldKind::stale_gradients, bytes.stale_gradients, parameters.gradients, always);
  const double stepped = parameters.optimizer * here;
  const double matrices = training.optimizer == Optimizer::muon ? parameters.matrices * here : 0;
  const Moments moments_held = is_first ? made_by_step : always;
  add(HeldKind::master, bytes.master, stepped, always);
  add(HeldKind::moments, bytes.optimizer - bytes.master, stepped - matrices, moments_held);
  add(HeldKind::moments, matrix_moment_bytes(training), matrices, moments_held);
  add(HeldKind::step_temporary, is_first ? main_gradient_bytes(bytes) : bytes.step_temporary,
      stepped, is_first ? made_by_step : of_step);
  return tensors;
}

}  // namespace windtunnel
