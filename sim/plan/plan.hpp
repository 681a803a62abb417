#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/enum_names.hpp"
#include "core/id.hpp"
#include "core/mapped.hpp"
#include "layout/layout.hpp"
#include "plan/chunk_map.hpp"
#include "plan/compression.hpp"
#include "plan/schedule.hpp"
#include "platform/software_profile.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

enum class Optimizer {
  adam,
  sgd,
  /// Momentum made orthogonal for the weight matrices of layers (Jordan et al. 2024); Adam for all other parameters.
  muon,
};

/// Number format of the moments that an optimizer keeps.
enum class MomentType : std::uint8_t {
  fp32,
  bf16,
  fp16,
  fp8,
  int8,  ///< with an fp32 scale for each block of values (bitsandbytes)
};

/// The copy of the weights that the optimizer steps.
enum class MainParameters : std::uint8_t {
  profile,  ///< as the software profile counts its states
  fp32,
  fp32_remainder,  ///< the 16 bits of an fp32 copy that the bf16 weights do not have
  fp16,
  none,  ///< the weights themselves are stepped
};

/// Matrix of a layer that may have an adapter, under its name in Hugging Face's models.
enum class LoraTarget : std::uint8_t {
  q_proj,
  k_proj,
  v_proj,
  o_proj,
  gate_proj,
  up_proj,
  down_proj,
};

/// Format of weights that are not trained.
enum class FrozenType : std::uint8_t {
  as_passes,  ///< in the precision of the passes
  nf4,        ///< matrices of layers in four bits, cast for each product (QLoRA)
};

/// Low-rank adapters (Hu et al. 2021, arXiv:2106.09685): each target matrix W [out, in] is frozen, and B A next to it is trained, B [out, r]
/// and A [r, in]. Nothing else is trained.
struct Lora {
  static constexpr auto all_targets = enumerators<LoraTarget>();
  int rank = 0;  ///< r; 0: all parameters are trained
  std::vector<LoraTarget> targets{LoraTarget::q_proj, LoraTarget::v_proj};
  double dropout = 0;  ///< of what an adapter reads: the share of its values that is set to zero
  FrozenType frozen_type = FrozenType::as_passes;
  bool is_used() const { return rank > 0; }
  bool has(LoraTarget target) const {
    return is_used() && std::ranges::find(targets, target) != targets.end();
  }
};

/// Values of an operand in eight bits that share a scale.
enum class Fp8Recipe {
  tensor,  ///< all of them; weights and activations may be gathered as operands
  /// 128 of a row of an input or gradient, 128 x 128 of a weight: the largest of a block is found as it is cast, not in a pass of its own
  /// (Float8BlockScaling of Transformer Engine 2.3; DeepSeek-V3, arXiv:2412.19437, section 3.3.2).
  block,
  row,  ///< those that a product sums over: an operand is cast anew for each product, and gathered as it was
  mx,   ///< 32 of a row, as precision mxfp8
};

/// The layers that are recomputed, if not all of them are.
struct RecomputedLayers {
  int every = 0;  ///< those whose number on their rank is a multiple of it
  int first = 0;  ///< so many of each model chunk
  bool are_all() const { return every <= 1 && first == 0; }
  /// Number of layers that are not recomputed, out of `layers` that follow `before` others on their rank.
  int left_out(int before, int layers) const;
  /// True if the last of them is, so that its tensors are free when the first layer runs again.
  bool leave_out_last(int before, int layers) const;
};

/// Batch, precision and methods of training: the `training` block of a scenario.
struct Training {
  int global_batch = 0;  ///< samples
  int micro_batch = 0;   ///< samples
  Precision precision = Precision::fp16;
  Fp8Recipe fp8_recipe = Fp8Recipe::tensor;
  bool scales_blocks() const {
    return precision == Precision::fp8 && fp8_recipe == Fp8Recipe::block;
  }
  bool scales_rows() const { return precision == Precision::fp8 && fp8_recipe == Fp8Recipe::row; }
  GradientType gradient_type = GradientType::fp32;
  Optimizer optimizer = Optimizer::adam;
  MainParameters main_parameters = MainParameters::profile;
  MomentType first_moment = MomentType::fp32, second_moment = MomentType::fp32;
  double optimizer_offload = 0;  ///< share of the optimizer's states that the host keeps and steps
  bool overlap_optimizer_offload = false;  ///< copies overlap with the host's step
  double activation_offload =
      0;  ///< share of what layers keep for the backward pass that the host holds meanwhile
  Lora lora = {};
  Recompute recompute = Recompute::none;
  RecomputedModules recompute_modules =
      RecomputedModules::of_selective();  ///< where it is selective
  RecomputedLayers recompute_layers = {};
  Attention attention = Attention::standard;
  FlashKernel attention_kernel = FlashKernel::cudnn;  ///< where attention is `flash`
  bool compile = true;  ///< torch.compile fuses operations, where the stack runs with and without
  CrossEntropy cross_entropy = CrossEntropy::vocab_parallel;
  /// A tensor group computes the loss on its shares of the vocabulary; else each rank gathers all logits.
  bool loss_parallel = true;
};

/// Order of a rank's indices, the fastest first. Ranks are numbered through the nodes' GPUs in order, so the fastest index
/// is kept inside a node. Megatron-LM's order is tensor, data, pipeline (initialize_model_parallel in
/// megatron/mpu/initialize.py, v2.5; its later use-tp-pp-dp-mapping: tensor, pipeline, data).
using RankOrder = std::array<AxisName, 3>;
/// Megatron-LM's.
inline constexpr RankOrder default_rank_order{AxisName::tensor, AxisName::data, AxisName::pipeline};
/// Every order of the three.
std::vector<RankOrder> rank_orders();

/// Method by which the ranks of a context group, each with a part of every sequence, get the keys and values of the others.
enum class ContextMethod {
  ring,        ///< keys and values go round while attention computes on those that have come
  all_to_all,  ///< ranks exchange tokens for heads, and attend to whole sequences with some of the heads
};

/// Layers that embedding and head count as where layers are divided among the parts of the model.
struct EdgeLayers {
  int embedding = 0, loss = 0;
  bool operator==(const EdgeLayers&) const = default;
};

/// Division of the work over GPUs: the `parallel` block of a scenario. num_ranks() = tensor * context * data * pipeline; the expert
/// degrees regroup the ranks of a stage and multiply nothing. The reader of scenarios fills it (scenario/plan_json.cpp), a search
/// varies it (search/search_space.hpp), and make_plan() turns it into a Plan.
struct Parallel {
  int tensor = 1, pipeline = 1, data = 1;
  int context = 1;  ///< parts that a sequence is cut into, each on a rank of its own
  ContextMethod context_method = ContextMethod::ring;
  int expert = 1;         ///< ranks among which the experts of a layer are shared out
  int expert_tensor = 1;  ///< parts that each expert is cut into
  SchedulePtr schedule = default_schedule();
  int virtual_pipeline = 1;
  PipelineSend pipeline_send = PipelineSend::eager;
  bool alternates_one_group = false;  ///< SoftwareProfile::alternates_one_group
  bool sequence_parallel = false;
  /// Gathers and scatters of a tensor group run in pieces, each overlapped with the product of another piece.
  bool async_tensor_parallel = false;
  int zero_stage = 0;
  bool overlap_gradient_reduce = false;
  std::string gradient_ring =
      "flat";             ///< how replicas reduce gradients: a name of cost/collectives.def
  int zero_prefetch = 1;  ///< ZeRO 3: layers gathered ahead of the one that computes
  /// ZeRO 3: whether a layer's gathered parameters are dropped behind its forward pass, and gathered again for the backward one.
  bool reshard_after_forward = true;
  /// ZeRO 3 without stages: whether gradients are added up, whole, until the last microbatch (no_sync() of PyTorch's FSDP). Plans
  /// of other stages of ZeRO, of several stages and of one microbatch have false.
  bool no_sync = false;
  /// ZeRO: replicas that share one copy of the sharded states out among them; neighbours on the data axis. 0: all of them.
  int zero_group = 0;
  RankOrder rank_order = default_rank_order;
  EdgeLayers edge_layers;
  std::vector<int> stage_layers;  ///< by stage; empty: evenly
  /// Layers of every chunk, by its position in the model; empty: the layers of a stage are divided evenly.
  std::vector<int> position_layers;
  std::vector<int> placement;  ///< rank -> node * gpus_per_node + gpu; empty: in order
  std::map<std::string, int, std::less<>> settings;  ///< by name: keys that one pass alone reads

  /// ZeRO 3: whether passes gather what they need. Stages that do not reshard gather once an iteration, for all microbatches.
  bool gathers_in_passes() const {
    return zero_stage == 3 && (pipeline == 1 || reshard_after_forward);
  }
  /// ZeRO 3: whether backward passes scatter their gradients. Those of stages are added up, whole, until the last microbatch.
  bool scatters_in_passes() const { return can_scatter_in_passes() && !no_sync; }
  bool can_scatter_in_passes() const { return zero_stage == 3 && pipeline == 1; }

  /// Places on one of the axes of ranks: tensor, pipeline, and those of replicas.
  int size(AxisName axis) const;
  /// Ranks that hold the same parameters and reduce their gradients: places on all replica axes.
  int replicas() const { return data * replicas_of_data(); }
  /// Replicas that train on the same samples.
  int replicas_of_data() const;
  /// Ranks that take the same samples, among which a model and one sequence are cut.
  std::int64_t ranks_of_replica() const {
    return std::int64_t{tensor} * replicas_of_data() * pipeline;
  }
  std::int64_t ranks_of_stage() const { return std::int64_t{replicas()} * tensor; }
  std::int64_t num_ranks() const { return ranks_of_replica() * data; }
  /// The same as `num_ranks() > most`, for degrees whose product may not be a number of 64 bits.
  bool has_more_ranks_than(std::int64_t most) const {
    return std::int64_t{tensor} * pipeline > most || ranks_of_replica() > most ||
           num_ranks() > most;
  }

  /// Ranks of one pipeline that hold the same parameters.
  int copies_of_stage() const { return schedule->is_bidirectional() ? 2 : 1; }
  /// Ranks that reduce the gradients of the same parameters among them.
  int gradient_replicas() const { return replicas() * copies_of_stage(); }

  /// 0 where it is not given.
  int setting(std::string_view name) const { return value_in(settings, name, 0); }
};

/// Default way in which stages exchange messages under `schedule`.
inline PipelineSend usual_send(const Schedule& schedule, const SoftwareProfile& software) {
  return schedule.sends == ScheduleSends::as_stack ? software.pipeline_send : PipelineSend::eager;
}
/// The same in a plan that has `schedule` in place of its own: what the plan says holds for schedules of the same kind.
PipelineSend send_with(const Schedule& schedule, const Parallel& plan,
                       const SoftwareProfile& software);

/// A plan that may or may not be legal: what the `training` and `parallel` blocks of a scenario say.
struct PlanChoice {
  Training training;
  Parallel parallel;
};

/// The ranks of a plan on their axes.
Layout layout_of(const Parallel& parallel);
/// The replicas of a stage on theirs.
Layout replica_layout(const Parallel& parallel);
/// The axes of replicas but for `data` that have several places.
std::vector<AxisName> cut_axes(const Parallel& parallel);

/// Ranks of a stage among which the tokens of a layer are exchanged, those that share an expert included. Experts fold the ranks of
/// a stage anew: expert_tensor x expert x their copies, the first counts fastest (Megatron-Core's parallel folding, arXiv:2504.14960).
/// Megatron-Core calls it the expert tensor and model parallel size.
inline int expert_group_size(const Parallel& parallel) {
  return parallel.expert * parallel.expert_tensor;
}
/// Ranks of a stage that hold the same experts.
inline int expert_data_parallel_size(const Parallel& parallel) {
  return static_cast<int>(parallel.ranks_of_stage()) / expert_group_size(parallel);
}
/// Copies of each expert, which reduce its gradients.
inline int expert_copies(const Parallel& parallel) {
  return expert_data_parallel_size(parallel) * parallel.copies_of_stage();
}
/// Neighbouring replicas, whole tensor groups each, that hold whole groups of ranks that exchange tokens.
inline int replicas_of_experts(const Parallel& parallel) {
  return std::lcm(expert_group_size(parallel), parallel.tensor) / parallel.tensor;
}
/// Ranks of one tensor group that hold the same experts, on average.
inline double expert_copies_in_tensor_group(const Parallel& parallel) {
  return std::max(1.0, parallel.tensor / static_cast<double>(expert_group_size(parallel)));
}

/// The most replicas that a smaller cluster can train with, no more than the plan's: their experts are held whole, and so are the
/// groups that share out states (`zero_group`). 0: none.
int replicas_on(std::int64_t gpus, const Parallel& parallel);

/// Microbatches of a pipeline in one iteration, m = B / (d b).
inline int microbatches_of(const Training& training, const Parallel& parallel) {
  return training.global_batch / (parallel.data * training.micro_batch);
}

/// The part of the model that each chunk of each stage holds.
ChunkMap chunk_map_of(const Parallel& parallel);

/// Replicas among which states are sharded, where ZeRO shards any.
inline int sharding_group_size(const Parallel& parallel) {
  return parallel.zero_group > 0 ? parallel.zero_group : parallel.gradient_replicas();
}

/// The GPU of a rank.
struct GpuPlace {
  NodeId node;
  int gpu = 0;
};

/// One simulated device: the ranks of a tensor group that live in one node.
struct PlanDevice {
  int replica = 0;  ///< its place in replica_layout()
  StageId stage;
  int group_node = 0;  ///< which of the tensor group's nodes
  NodeId node;
  std::vector<RankId> ranks;
  std::vector<int> tensor_indices;  ///< of the ranks, in the tensor group
  std::vector<int> gpus;            ///< of the ranks, in the node
  int num_gpus() const { return static_cast<int>(gpus.size()); }
};

/// A parallel layout made concrete: the GPU of every rank, the layers of every stage, and the devices to simulate. Always consistent:
/// only make_plan() and PlanMaker make one, and they reject everything else. Cost tables, memory account, programs and report read it.
///
/// A PlanDevice stands for all GPUs of a tensor group inside one node, since they do the same at the same time: 512 GPUs in tensor
/// groups of 8 are 64 devices.
struct Plan {
  Training training;
  Parallel parallel;
  Compression compression;
  int num_nodes = 0;
  int gpus_per_node = 0;
  int microbatches = 0;       ///< microbatches_of()
  int broadcast_tensors = 0;  ///< of a layer: SoftwareProfile::broadcast_tensors
  int layers_of_bucket =
      1;  ///< whose gradients are reduced at once: SoftwareProfile::gradient_bucket
  std::vector<int>
      stage_layers;  ///< layers by stage; sums to the model's layers, once for each copy of a stage
  /// Layers by the position of their chunk in the model, where those of a stage are not divided evenly or two stages hold each.
  std::vector<int> position_layers;
  int mtp_layers = 0;  ///< Transformer::mtp_layers: the last part of the model has these too
  std::vector<GpuPlace> places;  ///< by rank
  int nodes_per_tensor_group = 1;
  std::vector<PlanDevice>
      devices;  ///< (replica * pipeline + stage) * nodes_per_tensor_group + its node of the group

  int num_ranks() const { return static_cast<int>(parallel.num_ranks()); }
  DeviceId device(int replica, StageId stage, int group_node) const {
    return DeviceId{
        (static_cast<std::size_t>(replica) * static_cast<std::size_t>(parallel.pipeline) +
         stage.index()) *
            static_cast<std::size_t>(nodes_per_tensor_group) +
        static_cast<std::size_t>(group_node)};
  }
  ChunkMap chunk_map() const { return chunk_map_of(parallel); }
  bool has_embedding(StageId stage) const { return chunk_map().holds_first(stage); }
  bool has_head(StageId stage) const { return chunk_map().holds_last(stage); }
  /// ZeRO 1 whose owners broadcast whole tensors behind the step.
  bool broadcasts_parameters() const { return parallel.zero_stage == 1 && broadcast_tensors > 0; }
  /// True if the reduction leaves each replica the gradients of its shard alone.
  bool scatters_gradients() const { return parallel.zero_stage > 0 && !broadcasts_parameters(); }
  /// Replicas that reduce gradients together. A sharding group then adds up its shards with those of the other groups.
  int reducing_replicas() const {
    return scatters_gradients() ? sharing_replicas() : parallel.replicas();
  }
  /// Replicas among which sharded states are shared out.
  int sharing_replicas() const {
    return parallel.zero_group > 0 ? parallel.zero_group : parallel.replicas();
  }
  /// Microbatches that go through each chunk.
  double microbatches_of_chunk() const {
    return static_cast<double>(microbatches) / parallel.copies_of_stage();
  }
  HeadPlace head_place() const;
  int chunk_layers(const ChunkPlace& place) const;
  /// Layers of multi-token prediction in a chunk.
  int mtp_layers_of(const ChunkPlace& place) const;
  /// The layers of the stage's longest chunk.
  int most_chunk_layers(StageId stage) const;
  /// Layers of the model before a chunk.
  int layers_before(const ChunkPlace& place) const;
};

/// Devices that together hold one copy of each parameter: the first replica's, a single place of its context group, with those of
/// the next replicas whose experts it lacks. Where two stages hold each part of the model, one of them.
std::vector<DeviceId> devices_of_one_copy(const Plan& plan);
/// Nodes of so many GPUs on which these devices are.
int nodes_of_replica(const Plan& plan, int gpus_per_node);

/// True if two stages hold a copy of a tied word embedding, and add up its gradients; it has none where adapters alone are trained.
bool synchronises_embedding(const Transformer& model, const Plan& plan);

/// The plan's demands on its schedule.
OrderShape order_shape(const Plan& plan);
/// The order in which `stage` runs its passes. O(1) a step.
std::vector<Step> schedule_order(const Plan& plan, StageId stage);

/// Why a plan cannot be made, with the numbers: which key of the scenario, what is wrong, what to
/// write.
struct PlanRejection {
  std::string key;  ///< JSON pointer of the key to blame
  std::string message;
  std::string suggestion;
  std::vector<std::string> spoils = {};  ///< pointers of what may be meant otherwise; empty: `key`
};

/// Nodes and GPUs that the cluster offers to the plan.
struct ClusterShape {
  std::vector<int> gpus_by_node;  ///< of the nodes in use, in order
  bool nodes_given = false;       ///< the scenario named the number of nodes
};

/// Lays the plan out: the GPU of each rank, layers per stage, devices. Rejects products that do not match the cluster, layers that do not divide,
/// batches that do not multiply out, codecs that the plan does not take; one rejection for one mistake (plan/plan_check.hpp).
std::variant<Plan, std::vector<PlanRejection>> make_plan(
    const Transformer& model, const Training& training, const Parallel& parallel,
    const ClusterShape& cluster, const SoftwareProfile& software, Compression compression = {});

/// Layers of each stage and, where a stage does not divide its own evenly, of each chunk by position.
struct LayerSplit {
  std::vector<int> stages, positions;
};

/// Sums layers by position into layers by stage.
LayerSplit split_of(std::vector<int> positions, const ChunkMap& map);

/// The layers of each stage when the file does not say: evenly; or, when layers do not divide and the stack counts embedding and head
/// as a layer each, or the file says what they count for (`edge_layers`), (L + 2) / p with one fewer where the embedding is, and one
/// fewer where the head is. With several chunks a stage the same holds of chunks: get_num_layers_to_build in
/// megatron/core/transformer/transformer_block.py, Megatron-Core 0.12 (account_for_embedding_in_pipeline_split). Empty when neither
/// divides.
LayerSplit default_layer_split(int layers, const Parallel& parallel,
                               bool embedding_and_head_as_layers);

/// The same by cost: a stage takes layers until those up to it have its share of the matrix weights of all layers and the
/// output head, so that the last ones may have the head alone. build_model in nanotron/models/base.py and get_block_compute_costs in
/// nanotron/models/llama.py, nanotron 0.4; that the head may fall on a stage before the last is not modelled.
///   16 layers of 2,048, a head worth 4 of them, on 4 stages: 5, 5, 5, 1
std::vector<int> stages_by_cost(const Transformer& model, const Parallel& parallel);

/// Makes one plan after another on one cluster, as make_plan() does, and lays devices out again only where ranks move.
class PlanMaker {
 public:
  /// The referred objects must outlive it.
  PlanMaker(const Transformer& model, const ClusterShape& cluster, const SoftwareProfile& software,
            Compression compression = {})
      : model_(&model), cluster_(&cluster), software_(&software) {
    plan_.compression = std::move(compression);
  }

  /// The plan, until the next call, or why there is none.
  std::variant<const Plan*, std::vector<PlanRejection>> make(const Training& training,
                                                             const Parallel& parallel);
  /// The last plan that was made.
  Plan take() { return std::move(plan_); }

 private:
  /// True if the devices of the last plan are those of this one.
  bool has_devices_of(const Parallel& parallel) const;

  const Transformer* model_;
  const ClusterShape* cluster_;
  const SoftwareProfile* software_;
  Plan plan_;
};

/// When the gradients of a stage are reduced over its replicas.
enum class GradientReduction {
  none,           ///< there is one replica; or inside the backward passes (ZeRO 3)
  per_iteration,  ///< whole gradients are kept, and reduced when the last pass has added its own
  /// Gradients are kept as shards (ZeRO 2), so every pass that makes them ends with their reduction. DeepSpeed 0.16.5:
  /// DeepSpeedEngine.allreduce_gradients (runtime/engine.py) waits for is_gradient_accumulation_boundary() below stage 2 only;
  /// independent_gradient_partition_epilogue (runtime/zero/stage_1_and_2.py) ends every backward pass, and with overlap_comm the
  /// device waits there for the reductions. Megatron-LM's FSDP with `optim_grads` also reduces on every microbatch
  /// (_make_param_hook, core/distributed/custom_fsdp/fully_sharded_data_parallel.py at 133d26c), but lets the last bucket run into
  /// the next pass.
  per_microbatch,
};
GradientReduction gradient_reduction(const Plan& plan);

/// True if a plan reduces the gradients of one chunk at a time: during the backward pass, or on every microbatch.
bool reduces_by_chunk(const Plan& plan);
/// In how many pieces a pass of a stage reduces its chunk's gradients: during the pass one for each Plan::layers_of_bucket (at least one), else
/// one behind it.
int gradient_buckets(const Plan& plan, StageId stage);

/// Bytes each parameter costs in this training on this stack, before any sharding: the profile's own bytes, adapted to fp32 training,
/// another gradient type, another optimizer, or other types of its states (docs/memory.md, section 2, has the rules). Under Muon they are
/// those of a parameter that Adam steps.
StateBytes state_bytes(const Training& training, const SoftwareProfile& software);

/// True if gradients of a layer's frozen weights are made and reduced with those of its adapters (SoftwareProfile::flattens_adapters).
bool reduces_frozen(const Plan& plan, const SoftwareProfile& software);

/// Bytes of all moments that one parameter has: Adam two, SGD one; under Muon a parameter that Adam steps, or one of a weight matrix.
double moment_bytes(const Training& training);
double matrix_moment_bytes(const Training& training);

/// One moment:  fp32 4, bf16 and fp16 2, fp8 1, int8 1 + 4/256, as each block of 256 values has an fp32 scale (Optimizer2State.init_state
/// in bitsandbytes/optim/optimizer.py, bitsandbytes at 95f9af3; _subclass_zeros of AdamW8bit in torchao has the same block).
double moment_size(MomentType type);

/// One weight that is not trained. Of a matrix of a layer in NF4:  1/2 + 1/64 + 4/(64 · 256) = 0.516, with scales of 64 values in eight bits
/// and an fp32 scale for 256 of those (Dettmers et al. 2023, arXiv:2305.14314, section 3, "double quantization"). The scales belong to
/// Params4bit's quant_state, which is no parameter: with ZeRO 3 each rank has all of them, and only the halves of a byte, stored as values
/// of 16 bits (bnb_4bit_quant_storage), are divided and gathered (bitsandbytes/nn/modules.py, release 0.43).
double frozen_weight_size(const Training& training);
double frozen_matrix_size(const Training& training);
double frozen_scale_size(const Training& training);
/// One weight of a layer's matrix as ZeRO 3 gathers it; `weight`: where it is kept as in the passes.
Bytes gathered_matrix_size(const Training& training, Bytes weight);

/// Bytes that the step moves for one parameter:  t + 2 (s' - s),  t that of the profile (`optimizer_bytes`), s the bytes of weights, main
/// parameters and moments of the profile and s' of this training, each read and written once in a step; no less than nothing.
double step_bytes(const Training& training, const SoftwareProfile& software);

}  // namespace windtunnel
