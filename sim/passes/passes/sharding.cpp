#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/pass.hpp"

namespace windtunnel {
namespace {

void move_edges_forward(PassOperations& pass) {
  pass.before.insert(pass.before.end(), pass.after.begin(), pass.after.end());
  pass.after.clear();
}

/// Layers whose parameters are gathered ahead of the one that computes.
int layers_ahead(const PassContext& in) {
  return in.software->waits_for_gathers() ? 0 : in.plan->parallel.zero_prefetch;
}

/// Tensors of a layer's adapters, two each.
double adapter_tensors(const PassContext& in) {
  const Lora& lora = in.plan->training.lora;
  return lora.is_used() ? 2.0 * static_cast<double>(lora.targets.size()) : 0;
}

/// Parameters of a layer, without its experts', that the host handles one by one.
double tensors_of_layer(const PassContext& in) {
  if (!in.software->host_gathers) return 1;
  return in.software->host_gathers->tensors_per_layer + adapter_tensors(in);
}

/// The same of gradients.
double trained_tensors_of_layer(const PassContext& in) {
  return in.plan->training.lora.is_used() ? adapter_tensors(in) : tensors_of_layer(in);
}

/// A gather or a scatter, with what the host does for its `tensors`.
std::vector<Operation> driven(const PassContext& in, const Operation& collective, double tensors,
                              double ranks) {
  if (!in.software->host_gathers) return {collective};
  const SoftwareProfile::HostGathers& host = *in.software->host_gathers;
  const Seconds worked = (host.per_tensor + host.per_rank * ranks) * tensors;
  Operation each = collective;
  if (host.runs_ahead) {
    each.launch = worked * in.launch_slowdown;
    return {each};
  }
  constexpr double most = std::numeric_limits<decltype(each.calls)>::max();
  each.calls = static_cast<std::uint16_t>(std::clamp(std::round(tensors), 1.0, most));
  return {kernel(Label::host_gather, worked + in.memory_time(collective.payload * 2.0)), each};
}

/// Parameters of a layer on one rank. Of its experts those that others have too.
ParameterCounts shared_out(const PassContext& in, const std::vector<Operation>& forward_layer) {
  ParameterCounts counts = count_parameters({{}, forward_layer, {}, 1});
  if (expert_copies(in.plan->parallel) > 1) return counts;
  counts.all -= counts.experts;
  counts.frozen -= counts.experts - counts.trained_experts;
  counts.experts = counts.trained_experts = 0;
  return counts;
}

/// Prepares a pass with sharded layers, before gathers and scatters are added.
void run_sharded(PassOperations& pass, const PassContext& in) {
  move_edges_forward(pass);
  pass.prefetch = std::max(1, layers_ahead(in));
  pass.taken = in.taken_by_collectives;
}

/// `experts`: the parameters of a layer's experts, which are gathered with those of the rest.
void gather_layers(PassOperations& pass, const PassContext& in, Overlap overlap, double experts) {
  const std::vector<Operation> gathered =
      driven(in, collective(Label::gather_layer, in.bytes.layer_parameters, overlap),
             tensors_of_layer(in), sharding_group_size(in.plan->parallel));
  if (experts > 0) {
    const std::vector<Operation> of_experts =
        driven(in, collective(Label::gather_expert_parameters, in.bytes.weight * experts, overlap),
               experts / in.expert_matrix, expert_copies(in.plan->parallel));
    pass.layer.insert(pass.layer.begin(), of_experts.begin(), of_experts.end());
  }
  pass.layer.insert(pass.layer.begin(), gathered.begin(), gathered.end());
}

constexpr int edge_tensors = 2;  ///< word embedding and positions

/// True if a layer is gathered once more for recomputation, as stacks do whose host drives the gathers.
bool gathers_again(const PassContext& in) {
  return in.software->waits_for_gathers() && in.plan->training.recompute == Recompute::full &&
         in.plan->parallel.reshard_after_forward;
}

/// ZeRO 1 shares out optimizer states, 2 gradients as well, 3 weights as well (Rajbhandari et al. 2020, section 5).
void share_states(ChunkOperations& chunk, const Parallel& parallel) {
  const double group_size = sharding_group_size(parallel);
  chunk.for_each([&parallel, group_size](Operation& operation) {
    const double copies = is_of_experts(operation.label) ? expert_copies(parallel) : group_size;
    StateShards& states = operation.held.shards;
    if (parallel.zero_stage >= 1) states.optimizer *= copies;
    if (parallel.zero_stage == 2 || parallel.can_scatter_in_passes()) states.gradients *= copies;
    if (parallel.zero_stage >= 3) states.weights *= copies;
  });
}

/// Gradients of flat parameters before their scatter: put together and, if summed in another type, cast, both read and written; then
/// divided in place.
void flatten_gradients(std::vector<Operation>& to, const PassContext& in, Bytes gradients) {
  if (!in.software->flat_parameters) return;
  const double put = 2 * (element_size(in.plan->training.precision) / in.bytes.gradient),
               cast = put == 2 ? 0 : put / 2 + 1, divided = 2;
  to.push_back(kernel(Label::weight_gradients, in.memory_time(gradients * (put + cast + divided))));
}

/// Parameters of embedding and head.
ParameterCounts edge_parameters(const PassOperations& forward) {
  return count_parameters({forward.before, {}, forward.after});
}

/// The most words that an operation outside of the layers holds: tied ones are gathered once.
double most_words(const PassOperations& forward) {
  double words = 0;
  for (const std::vector<Operation>* edge : {&forward.before, &forward.after})
    for (const Operation& operation : *edge)
      words = std::max(words, operation.held.parameters.divided);
  return words;
}

/// Layers whose parameters a stack that gathers tensor by tensor keeps at a time, next to the words: what is used again within as many
/// parameters stays, release_sub_module in deepspeed/runtime/zero/partitioned_param_coordinator.py, DeepSpeed 0.14.
double live_layers(const PassContext& in, double of_layer, const PassOperations& forward) {
  return std::clamp((in.software->live_parameters - most_words(forward)) / of_layer, 0.0,
                    static_cast<double>(in.chunk.layers));
}

/// The parameters and gradients that a rank has of others in the backward pass (docs/memory.md, section 7). A unit is a layer, or embedding
/// and head. Of a layer that computes: its parameters, those of the layers gathered ahead, its gradients, and those of the layer before it
/// in the type in which they are scattered. Of embedding and head: parameters, the head's gradient, and at the end all gradients in both
/// types. A stack that gathers tensor by tensor: the layer's parameters and those ahead, or as many layers as live_layers(), its gradients, and
/// the words and theirs; a lower bound where live_parameters is not known.
void hold_gathered(ChunkOperations& chunk, const PassContext& in) {
  PassOperations& backward = chunk.at(Direction::backward);
  const PassOperations& forward = chunk.at(Direction::forward);
  const bool is_counted = in.software->sharded_parameters != ShardedParameters::uncounted;
  backward.for_each([is_counted](Operation& operation) {
    if (!is_counted) operation.held.at(Kept::passing) = {};
    operation.held.at(Kept::weight_gradient) = {};
  });
  const Bytes element = element_size(in.plan->training.precision),
              summed = element_size(in.plan->training.gradient_type);
  const bool trains_words = !in.plan->training.lora.is_used();
  const Bytes words = element * most_words(forward),
              word_gradients = trains_words ? words : Bytes{};
  if (!backward.layer.empty() && in.chunk.layers > 0) {
    Held& held = backward.layer.back().held;
    const bool reshards = in.plan->parallel.reshard_after_forward;
    const ParameterCounts layer = shared_out(in, forward.layer);
    const int ahead = reshards ? std::min(in.chunk.layers - 1, layers_ahead(in)) : 0;
    const Bytes weight = reshards && !is_counted ? element : in.bytes.weight;
    const double matrices = layer.frozen_matrices * sharding_group_size(in.plan->parallel);
    const Bytes unit =
        weight * layer.all - (weight - gathered_matrix_size(in.plan->training, weight)) * matrices;
    held.at(Kept::unit).whole = unit;
    held.at(Kept::gathered).whole = unit * (reshards ? 1 : in.chunk.layers);
    held.at(is_counted ? Kept::prefetched : Kept::gathered).whole += unit * ahead;
    if (!is_counted && reshards)
      held.at(Kept::gathered).whole =
          std::max(held.at(Kept::gathered).whole, unit * live_layers(in, layer.all, forward));
    const double reduced = reduces_frozen(*in.plan, *in.software) ? layer.all : layer.trained();
    held.at(Kept::weight_gradient).whole = element * reduced;
    if (is_counted && in.plan->parallel.can_scatter_in_passes())
      held.at(Kept::reduced).whole = summed * reduced;
  }
  if (backward.before.empty() && backward.after.empty()) return;
  Held& held = (backward.before.empty() ? backward.after.back() : backward.before.front()).held;
  const double parameters = edge_parameters(forward).all;
  held.at(Kept::gathered).whole = is_counted ? element * parameters : words;
  held.at(Kept::weight_gradient).whole =
      is_counted && backward.before.empty() ? Bytes{} : word_gradients;
  if (is_counted && trains_words) held.at(Kept::reduced).whole = (element + summed) * parameters;
}

/// ZeRO 3, fully sharded data parallelism: a layer's parameters are gathered over the replicas before its kernels, forward and
/// backward, and its gradients scattered behind the backward ones, in their own type. Embedding and head are gathered before the
/// forward pass, stay, and are scattered behind the backward one.
/// Sources: Rajbhandari et al. 2020, arXiv:1910.02054, section 7.2. Gradients of each microbatch: DeepSpeed 0.16.5, partition_grads in
/// runtime/zero/stage3.py, adds them to the shard; PyTorch 2.1, _post_backward_hook in torch/distributed/fsdp/_runtime_utils.py, does so
/// outside of no_sync(), with which they are reduced during and after the last backward pass (Parallel::no_sync). Embedding and head: the
/// root unit of PyTorch FSDP (Zhao et al., VLDB 2023, section 4.2).
/// With `zero_prefetch` 0 nothing overlaps with kernels. With `zero_group` the states are shared out in groups of neighbouring replicas,
/// and each shard of gradients is then all-reduced among the groups, on every microbatch: hybrid sharding, _reduce_grad in
/// torch/distributed/fsdp/_runtime_utils.py, PyTorch 2.1 (Zhao et al., VLDB 2023, section 3.2.2).
/// If the device waits for the host (SoftwareProfile::host_gathers), nothing is prefetched, and recomputation gathers a third time:
/// DeepSpeed 0.4, all_gather in runtime/zero/partition_parameters.py, one parameter after another, each with a buffer that is filled, a
/// synchronisation of the device and a loop over the ranks (its issue 1174, pull request 1188).
/// Experts are gathered and scattered among the ranks that hold the same ones, in the same places: DeepSpeed 0.16.5, expert_dp_process_group
/// in runtime/zero/stage_1_and_2.py; one more mesh for experts in torchtitan's apply_fsdp (torchtitan/models/llama4/infra/parallelize.py).
/// Without resharding what was gathered forward stays for the backward pass (fully_shard(reshard_after_forward=False) of PyTorch 2.8). So
/// stages do by default, which then gather once an iteration, and add up whole gradients until the last microbatch: apply_fsdp in
/// torchtitan/models/llama3/infra/parallelize.py, torchtitan at 820504e; backward_maybe_with_nosync in torch/distributed/pipelining/
/// stage.py, PyTorch 2.8, which reduces behind the last backward pass.
/// Limit: what the pass does besides its layers stands before them, so that no scatter hides behind the embedding.
void shard_parameters(ChunkOperations& chunk, const PassContext& in) {
  share_states(chunk, in.plan->parallel);
  if (in.plan->parallel.zero_stage != 3) return;
  hold_gathered(chunk, in);
  if (in.plan->parallel.replicas() == 1 || !in.plan->parallel.gathers_in_passes()) return;
  const bool prefetches = layers_ahead(in) > 0;
  const Overlap ahead = prefetches ? Overlap::prefetched : Overlap::none;
  PassOperations& forward = chunk.at(Direction::forward);
  const ParameterCounts edges = edge_parameters(forward);
  const ParameterCounts layer = shared_out(in, forward.layer);
  const Bytes gradients = element_size(in.plan->training.gradient_type) * edges.trained();
  run_sharded(forward, in);
  gather_layers(forward, in, ahead, layer.experts);
  const std::vector<Operation> gathered = driven(
      in, collective(Label::gather_edges, element_size(in.plan->training.precision) * edges.all),
      edge_tensors, sharding_group_size(in.plan->parallel));
  forward.before.insert(forward.before.begin(), gathered.begin(), gathered.end());
  const int group_size = sharding_group_size(in.plan->parallel);
  const bool hides_backward = prefetches && !in.software->gathers_behind_scatters;
  const Overlap behind = hides_backward ? Overlap::trailing : Overlap::none;
  for (const Direction direction : {Direction::backward, Direction::input_gradient}) {
    PassOperations& backward = chunk.at(direction);
    const Overlap before = hides_backward ? Overlap::prefetched : Overlap::none;
    run_sharded(backward, in);
    if (in.plan->parallel.reshard_after_forward) gather_layers(backward, in, before, layer.experts);
    if (gathers_again(in)) gather_layers(backward, in, before, layer.experts);
    const auto scatter = [&in](std::vector<Operation>& to, const Operation& operation,
                               double tensors, int ranks) {
      flatten_gradients(to, in, operation.payload);
      const std::vector<Operation> scattered = driven(in, operation, tensors, ranks);
      to.insert(to.end(), scattered.begin(), scattered.end());
    };
    if (!in.plan->parallel.scatters_in_passes()) continue;
    scatter(backward.layer, collective(Label::scatter_layer, in.bytes.layer_gradients, behind),
            trained_tensors_of_layer(in), group_size);
    if (layer.trained_experts > 0)
      scatter(backward.layer,
              collective(Label::scatter_experts, in.bytes.gradient * layer.trained_experts, behind),
              layer.trained_experts / in.expert_matrix, expert_copies(in.plan->parallel));
    const bool scatters_edges = gradients > Bytes{};
    if (scatters_edges)
      scatter(backward.after, collective(Label::scatter_edges, gradients), edge_tensors,
              group_size);
    else  // frozen words take no time, and wait for the last layer's scatter
      backward.after.push_back(kernel(Label::embedding, {}));
    if (group_size == in.plan->parallel.replicas()) continue;
    const double shard = 1.0 / group_size;
    backward.layer.push_back(
        collective(Label::reduce_layer, in.bytes.layer_gradients * shard, behind));
    if (scatters_edges)
      backward.after.push_back(collective(Label::reduce_edges, gradients * shard));
  }
}

}  // namespace

const OperationPass& sharding_pass() {
  static const OperationPass pass{"sharding", shard_parameters};
  return pass;
}

}  // namespace windtunnel
