#include "plan/plan.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "core/contracts.hpp"
#include "core/mapped.hpp"
#include "plan/plan_check.hpp"

namespace windtunnel {
namespace {

std::string text(int number) { return std::to_string(number); }

/// The GPU of each rank: the GPUs of the nodes in order.
std::vector<GpuPlace> places_in_order(const ClusterShape& cluster, int num_ranks) {
  std::vector<GpuPlace> places;
  places.reserve(static_cast<std::size_t>(num_ranks));
  for (std::size_t node = 0; node < cluster.gpus_by_node.size(); ++node)
    for (int gpu = 0; gpu < cluster.gpus_by_node[node]; ++gpu)
      if (static_cast<int>(places.size()) < num_ranks) places.push_back({NodeId{node}, gpu});
  WT_ENSURE(static_cast<int>(places.size()) == num_ranks);
  return places;
}

/// Splits a tensor group into its ranks of each node, nodes in the order of their first rank.
std::vector<PlanDevice> devices_of_group(const Plan& plan, const Layout& layout,
                                         const Layout& replicas, int replica, int stage) {
  std::vector<Axis> places{{AxisName::pipeline, stage}};
  for (const AxisName axis : replica_axes())
    places.push_back({axis, replicas.coordinate(RankId{replica}, axis)});
  const int first = static_cast<int>(layout.rank(places).index());
  const int apart = layout.stride(AxisName::tensor);
  std::vector<PlanDevice> devices;
  for (int i = 0; i < plan.parallel.tensor; ++i) {
    const RankId rank{first + i * apart};
    const GpuPlace place = plan.places[rank.index()];
    auto device = std::ranges::find_if(
        devices, [&](const PlanDevice& known) { return known.node == place.node; });
    if (device == devices.end()) {
      const int part = static_cast<int>(devices.size());
      device =
          devices.insert(devices.end(), {replica, StageId{stage}, part, place.node, {}, {}, {}});
      const auto most = static_cast<std::size_t>(plan.parallel.tensor - i);
      device->ranks.reserve(most);
      device->tensor_indices.reserve(most);
      device->gpus.reserve(most);
    }
    device->ranks.push_back(rank);
    device->tensor_indices.push_back(i);
    device->gpus.push_back(place.gpu);
  }
  return devices;
}

/// The GPU of each rank.
std::vector<GpuPlace> places_of(const Parallel& parallel, const ClusterShape& cluster) {
  const auto num_ranks = static_cast<int>(parallel.num_ranks());
  if (parallel.placement.empty()) return places_in_order(cluster, num_ranks);
  WT_EXPECT(static_cast<int>(parallel.placement.size()) == num_ranks);
  const int gpus_per_node = cluster.gpus_by_node.front();
  return mapped(parallel.placement, [&](int gpu) {
    return GpuPlace{NodeId{gpu / gpus_per_node}, gpu % gpus_per_node};
  });
}

/// Fills `devices`; a group that is cut unevenly by node borders is rejected.
void add_devices(Plan& plan, PlanFindings& findings) {
  plan.devices.reserve(static_cast<std::size_t>(plan.parallel.replicas() * plan.parallel.pipeline));
  const Layout layout = layout_of(plan.parallel), replicas = replica_layout(plan.parallel);
  for (int replica = 0; replica < plan.parallel.replicas(); ++replica) {
    for (int stage = 0; stage < plan.parallel.pipeline; ++stage) {
      std::vector<PlanDevice> group = devices_of_group(plan, layout, replicas, replica, stage);
      if (plan.devices.empty()) plan.nodes_per_tensor_group = static_cast<int>(group.size());
      bool even = static_cast<int>(group.size()) == plan.nodes_per_tensor_group;
      for (const PlanDevice& device : group)
        even = even && device.num_gpus() * plan.nodes_per_tensor_group == plan.parallel.tensor;
      if (!even) {
        findings.reject({"/parallel/tensor",
                         "the tensor group of stage " + text(stage) + ", replica " + text(replica) +
                             " is cut unevenly by the borders of the nodes (" +
                             text(plan.parallel.tensor) + " ranks on " +
                             text(static_cast<int>(group.size())) + " nodes)",
                         "use a tensor that divides the GPUs of a node, or is a multiple of them"});
        return;
      }
      std::move(group.begin(), group.end(), std::back_inserter(plan.devices));
    }
  }
}

/// As many whole layers as its bucket holds, at least one. Gradients of experts are in none.
int layers_of_bucket(const Transformer& model, int tensor, double bucket) {
  const double layers = bucket / layer_matrix_parameters(model, tensor, 0);
  return static_cast<int>(std::clamp<double>(layers, 1, model.layers));
}

/// `layers` and what the edges count for, divided by the number of parts, without what they count for; empty where it does not divide.
std::vector<int> divided(int layers, std::size_t parts, const EdgeLayers& edges) {
  const int count = static_cast<int>(parts), all = layers + edges.embedding + edges.loss;
  if (all % count != 0) return {};
  std::vector<int> result(parts, all / count);
  result.front() -= edges.embedding;
  result.back() -= edges.loss;
  return result.front() < 0 || result.back() < 0 ? std::vector<int>{} : result;
}

constexpr double half_bytes = 2;    ///< of an fp16 or bf16 value
constexpr double single_bytes = 4;  ///< of an fp32 value
/// Two moments, as profiles count them. SGD has one, momentum; without it there would be none [assumed].
constexpr double adam_bytes = 2 * single_bytes;

bool is_half(Precision precision) {
  return precision == Precision::fp16 || base_precision(precision) == Precision::bf16;
}

/// Training in fp32 or tf32 [assumed]: weights 4, gradients 4, Adam 8; the weights are their own
/// master.
StateBytes single_precision_states() {
  return {.weights = single_bytes,
          .gradients = single_bytes,
          .stale_gradients = 0,
          .optimizer = adam_bytes,
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

/// Without a copy of their own, weights are as the passes use them, and gradients as they are reduced.
StateBytes without_main_parameters(StateBytes states, const Training& training) {
  states.weights = half_bytes;
  states.gradients = training.gradient_type == GradientType::fp32 ? single_bytes : half_bytes;
  states.master = 0;
  return states;
}

/// Applies the scenario's choice of the copy that is stepped. A step that reads other types than the profile's reads gradients as they are, and
/// writes the passes' weights itself: FusedAdam.step in transformer_engine/pytorch/optimizers/fused_adam.py, Transformer Engine 2.1.
StateBytes with_main_parameters(StateBytes states, const Training& training) {
  const MainParameters main = training.main_parameters;
  if (main == MainParameters::profile) return states;
  states.stale_gradients = 0;
  states.step_temporary = 0;
  switch (main) {
    case MainParameters::none:
      return without_main_parameters(states, training);
    case MainParameters::fp32:
      if (states.weights < single_bytes) states.master = single_bytes;
      return states;
    case MainParameters::fp32_remainder:
    case MainParameters::fp16:
      states.master = half_bytes;
      return states;
    case MainParameters::profile:
      break;
  }
  WT_UNREACHABLE();
}

}  // namespace

ChunkMap chunk_map_of(const Parallel& parallel) {
  return {parallel.pipeline, parallel.virtual_pipeline, parallel.schedule->chunk_path};
}

int Plan::layers_before(const ChunkPlace& place) const {
  const ChunkMap map = chunk_map();
  int layers = 0;
  for (int position = 0; position < map.position(place); ++position)
    layers += chunk_layers(map.at(position));
  return layers;
}

PipelineSend send_with(const Schedule& schedule, const Parallel& plan,
                       const SoftwareProfile& software) {
  const auto brings_its_own = [](const Schedule& each) {
    return each.sends != ScheduleSends::as_stack;
  };
  return brings_its_own(schedule) == brings_its_own(*plan.schedule) &&
                 schedule.sends != ScheduleSends::only_eager
             ? plan.pipeline_send
             : usual_send(schedule, software);
}

HeadPlace Plan::head_place() const {
  const ChunkMap map = chunk_map();
  return map.holds_last(map.first().stage) ? HeadPlace::with_embedding
                                           : HeadPlace::on_another_stage;
}

int replicas_on(std::int64_t gpus, const Parallel& parallel) {
  const auto least_for = [](int degree, int of_one) { return degree / std::gcd(degree, of_one); };
  const int of_data = parallel.replicas_of_data();
  const int whole_experts = least_for(expert_group_size(parallel), of_data * parallel.tensor);
  const int whole_groups = least_for(std::max(1, parallel.zero_group), of_data);
  const int at_once = std::lcm(whole_experts, whole_groups);
  const std::int64_t replicas =
      std::min<std::int64_t>(parallel.data, gpus / parallel.ranks_of_replica());
  return static_cast<int>(replicas) / at_once * at_once;
}

std::vector<DeviceId> devices_of_one_copy(const Plan& plan) {
  std::vector<DeviceId> devices;
  const int stages = plan.parallel.pipeline / plan.parallel.copies_of_stage();
  for (int replica = 0; replica < replicas_of_experts(plan.parallel); ++replica)
    for (int stage = 0; stage < stages; ++stage)
      for (int part = 0; part < plan.nodes_per_tensor_group; ++part)
        devices.push_back(plan.device(replica, StageId{stage}, part));
  return devices;
}

int nodes_of_replica(const Plan& plan, int gpus_per_node) {
  std::set<std::pair<NodeId, int>> nodes;
  for (const DeviceId id : devices_of_one_copy(plan)) {
    const PlanDevice& device = plan.devices[id.index()];
    for (const int gpu : device.gpus) nodes.emplace(device.node, gpu / gpus_per_node);
  }
  return static_cast<int>(nodes.size());
}

bool synchronises_embedding(const Transformer& model, const Plan& plan) {
  return (model.tied_embeddings || model.mtp_layers > 0) &&
         plan.head_place() == HeadPlace::on_another_stage && !plan.training.lora.is_used();
}

OrderShape order_shape(const Plan& plan) {
  const Parallel& parallel = plan.parallel;
  // The first stage has forward passes alone before its first backward one: exchanged in pairs, its messages would never meet the others'.
  const bool alternates =
      parallel.alternates_one_group && parallel.pipeline_send == PipelineSend::eager;
  return {parallel.pipeline, plan.microbatches, parallel.virtual_pipeline,
          parallel.schedule->chunk_path, alternates};
}

std::vector<Step> schedule_order(const Plan& plan, StageId stage) {
  const OrderShape shape = order_shape(plan);
  WT_EXPECT(shape.microbatches > 0 && static_cast<int>(stage.index()) < shape.stages);
  WT_EXPECT(plan.parallel.schedule->takes(shape.chunks));
  return plan.parallel.schedule->order(shape, stage);
}

int RecomputedLayers::left_out(int before, int layers) const {
  if (first > 0) return std::max(layers - first, 0);
  return every > 1 ? layers - ((before + layers) / every - before / every) : 0;
}

bool RecomputedLayers::leave_out_last(int before, int layers) const {
  if (first > 0) return layers > first;
  return every > 1 && (before + layers) % every != 0;
}

std::vector<RankOrder> rank_orders() {
  using enum AxisName;
  return {RankOrder{tensor, data, pipeline}, {tensor, pipeline, data}, {data, tensor, pipeline},
          {data, pipeline, tensor},          {pipeline, tensor, data}, {pipeline, data, tensor}};
}

Layout layout_of(const Parallel& parallel) {
  std::vector<Axis> axes;
  for (const AxisName axis : parallel.rank_order) {
    if (axis != AxisName::data) axes.push_back({axis, parallel.size(axis)});
    for (const AxisName of_replicas : replica_axes())
      if (axis == AxisName::data) axes.push_back({of_replicas, parallel.size(of_replicas)});
  }
  return Layout(std::move(axes));
}

Layout replica_layout(const Parallel& parallel) {
  return Layout(mapped(replica_axes(), [&](AxisName axis) {
    return Axis{axis, parallel.size(axis)};
  }));
}

std::vector<AxisName> cut_axes(const Parallel& parallel) {
  std::vector<AxisName> axes;
  for (const AxisName axis : replica_axes())
    if (axis != AxisName::data && parallel.size(axis) > 1) axes.push_back(axis);
  return axes;
}

int Parallel::size(AxisName axis) const {
  switch (axis) {
    case AxisName::tensor:
      return tensor;
    case AxisName::pipeline:
      return pipeline;
    case AxisName::context:
      return context;
    case AxisName::data:
      return data;
    default:
      return std::max(1, setting(name_of(axis)));
  }
}

int Parallel::replicas_of_data() const {
  int product = 1;
  for (const AxisName axis : replica_axes())
    if (axis != AxisName::data) product *= size(axis);
  return product;
}

LayerSplit split_of(std::vector<int> positions, const ChunkMap& map) {
  LayerSplit split;
  bool even = !map.is_bidirectional();
  for (int i = 0; i < map.num_positions(); ++i) {
    const ChunkPlace place = map.at(i);
    const int layers = positions[static_cast<std::size_t>(i)];
    for (const StageId holder : map.holders(place.stage)) {
      if (split.stages.size() <= holder.index()) split.stages.resize(holder.index() + 1);
      split.stages[holder.index()] += layers;
    }
    even = even && layers == positions[static_cast<std::size_t>(map.position({place.stage, 0}))];
  }
  if (!even) split.positions = std::move(positions);
  return split;
}

LayerSplit default_layer_split(int layers, const Parallel& parallel,
                               bool embedding_and_head_as_layers) {
  const int stages = parallel.pipeline;
  const ChunkMap map = chunk_map_of(parallel);
  const auto by_position = [&](const EdgeLayers& edges) {
    std::vector<int> positions =
        divided(layers, static_cast<std::size_t>(map.num_positions()), edges);
    return positions.empty() ? LayerSplit{} : split_of(std::move(positions), map);
  };
  if (parallel.edge_layers != EdgeLayers{}) return by_position(parallel.edge_layers);
  if (layers % stages == 0 && map.is_bidirectional()) return by_position({});
  if (layers % stages == 0)
    return {std::vector<int>(static_cast<std::size_t>(stages), layers / stages), {}};
  return embedding_and_head_as_layers && stages > 1 ? by_position({1, 1}) : LayerSplit{};
}

std::vector<int> stages_by_cost(const Transformer& model, const Parallel& parallel) {
  const double hidden = model.hidden,
               layer = hidden * (4 * model.heads_width() + 3.0 * model.ffn_hidden),
               all = model.layers * layer + padded_vocab(model, parallel.tensor) * hidden;
  std::vector<int> layers(static_cast<std::size_t>(parallel.pipeline));
  std::size_t stage = 0;
  for (int i = 1; i <= model.layers; ++i) {
    ++layers[stage];
    // The code has >. In the runs of nanotron-h100-1b, whose head is worth four layers to the last bit, a stage ended at its share all the
    // same: with > the step's memory of the first rank is 3 % too high in 112 of them.
    if (i * layer >= all * (static_cast<double>(stage + 1) / parallel.pipeline)) ++stage;
  }
  return layers;
}

int Plan::chunk_layers(const ChunkPlace& place) const {
  if (position_layers.empty()) return stage_layers[place.stage.index()] / parallel.virtual_pipeline;
  return position_layers[static_cast<std::size_t>(chunk_map().position(place))];
}

int Plan::mtp_layers_of(const ChunkPlace& place) const {
  return chunk_map().is_last(place) ? mtp_layers : 0;
}

int Plan::most_chunk_layers(StageId stage) const {
  int most = 0;
  for (int chunk = 0; chunk < parallel.virtual_pipeline; ++chunk)
    most = std::max(most, chunk_layers({stage, chunk}));
  return most;
}

std::variant<Plan, std::vector<PlanRejection>> make_plan(
    const Transformer& model, const Training& training, const Parallel& parallel,
    const ClusterShape& cluster, const SoftwareProfile& software, Compression compression) {
  PlanMaker maker(model, cluster, software, std::move(compression));
  auto made = maker.make(training, parallel);
  if (auto* rejections = std::get_if<std::vector<PlanRejection>>(&made))
    return std::move(*rejections);
  return maker.take();
}

bool PlanMaker::has_devices_of(const Parallel& parallel) const {
  const Parallel& last = plan_.parallel;
  return !plan_.devices.empty() && last.tensor == parallel.tensor &&
         last.pipeline == parallel.pipeline &&
         replica_layout(last).axes() == replica_layout(parallel).axes() &&
         last.rank_order == parallel.rank_order && last.placement == parallel.placement;
}

std::variant<const Plan*, std::vector<PlanRejection>> PlanMaker::make(const Training& training,
                                                                      const Parallel& parallel) {
  WT_EXPECT(training.global_batch > 0 && training.micro_batch > 0);
  WT_EXPECT(parallel.tensor > 0 && parallel.pipeline > 0 && parallel.replicas() > 0);
  RejectionList rejections;
  const PlanInputs inputs{*model_, training, parallel, *software_};
  check_tensor(inputs, rejections);
  if (parallel.stage_layers.empty()) check_even_stages(inputs, rejections);
  check_pairs(inputs, rejections);
  check_context(inputs, rejections);
  check_product(inputs, *cluster_, rejections);
  check_experts(inputs, rejections);
  check_recompute(inputs, rejections);
  check_states(inputs, rejections);
  check_adapters(inputs, rejections);
  check_work(inputs, rejections);
  check_compression(plan_.compression, parallel, rejections);
  if (!rejections.all().empty()) return rejections.all();

  const bool has_devices = has_devices_of(parallel);
  plan_.training = training;
  plan_.parallel = parallel;
  LayerSplit split = layer_split({*model_, training, parallel, *software_});
  plan_.stage_layers = std::move(split.stages);
  plan_.position_layers = std::move(split.positions);
  plan_.mtp_layers = model_->mtp_layers;
  plan_.num_nodes = static_cast<int>(cluster_->gpus_by_node.size());
  plan_.gpus_per_node = cluster_->gpus_by_node.front();
  plan_.microbatches = microbatches_of(training, parallel);
  Parallel& kept = plan_.parallel;
  kept.no_sync = kept.no_sync && kept.can_scatter_in_passes() && plan_.microbatches > 1;
  if (parallel.no_sync && kept.scatters_in_passes()) kept.overlap_gradient_reduce = false;
  plan_.broadcast_tensors = software_->broadcast_tensors;
  plan_.layers_of_bucket = layers_of_bucket(*model_, parallel.tensor, software_->gradient_bucket);
  if (has_devices) return &plan_;
  plan_.devices.clear();
  plan_.places = places_of(parallel, *cluster_);
  add_devices(plan_, rejections);
  if (rejections.all().empty()) return &plan_;
  plan_.devices.clear();
  return rejections.all();
}

void check_borders(const Parallel& parallel, const ClusterShape& cluster, PlanFindings& findings) {
  Plan plan;
  plan.parallel = parallel;
  plan.places = places_of(parallel, cluster);
  add_devices(plan, findings);
}

GradientReduction gradient_reduction(const Plan& plan) {
  if (plan.parallel.gradient_replicas() == 1 || plan.parallel.scatters_in_passes())
    return GradientReduction::none;
  return plan.parallel.zero_stage == 2 ? GradientReduction::per_microbatch
                                       : GradientReduction::per_iteration;
}

bool reduces_by_chunk(const Plan& plan) {
  switch (gradient_reduction(plan)) {
    case GradientReduction::none:
      return false;
    case GradientReduction::per_iteration:
      return plan.parallel.overlap_gradient_reduce;
    case GradientReduction::per_microbatch:
      return true;
  }
  return false;
}

int gradient_buckets(const Plan& plan, StageId stage) {
  if (!plan.parallel.overlap_gradient_reduce) return 1;
  const int each = plan.layers_of_bucket;
  return std::max(1, (plan.most_chunk_layers(stage) + each - 1) / each);
}

double moment_size(MomentType type) {
  constexpr double block = 256;
  switch (type) {
    case MomentType::fp32:
      return single_bytes;
    case MomentType::bf16:
    case MomentType::fp16:
      return half_bytes;
    case MomentType::fp8:
      return 1;
    case MomentType::int8:
      return 1 + single_bytes / block;
  }
  WT_UNREACHABLE();
}

double moment_bytes(const Training& training) {
  const double first = moment_size(training.first_moment);
  return training.optimizer == Optimizer::sgd ? first : first + moment_size(training.second_moment);
}

double matrix_moment_bytes(const Training& training) {
  return training.optimizer == Optimizer::muon ? moment_size(training.first_moment)
                                               : moment_bytes(training);
}

double frozen_weight_size(const Training& training) {
  return element_size(training.precision) / Bytes{1};
}

double frozen_matrix_size(const Training& training) {
  constexpr double bits = 4.0 / 8;
  return training.lora.frozen_type == FrozenType::nf4 ? bits + frozen_scale_size(training)
                                                      : frozen_weight_size(training);
}

double frozen_scale_size(const Training& training) {
  constexpr double block = 64, scales_in_block = 256;
  return training.lora.frozen_type == FrozenType::nf4
             ? 1 / block + single_bytes / (block * scales_in_block)
             : 0;
}

Bytes gathered_matrix_size(const Training& training, Bytes weight) {
  return training.lora.frozen_type == FrozenType::nf4
             ? Bytes{frozen_matrix_size(training) - frozen_scale_size(training)}
             : weight;
}

StateBytes state_bytes(const Training& training, const SoftwareProfile& software) {
  StateBytes states = is_half(training.precision) ? half_precision_states(training, software)
                                                  : single_precision_states();
  // A stack with fewer bytes than those and an fp32 copy does not say which of them it keeps.
  const double extra = states.optimizer - adam_bytes;
  states.master = extra >= single_bytes ? extra : 0;
  const double unnamed = extra - states.master;
  states = with_main_parameters(states, training);
  // Of a stack that keeps less than Adam's moments in fp32, smaller moments leave nothing, not less.
  states.optimizer = std::max(0.0, states.master + unnamed + moment_bytes(training));
  // Moments of eight bits are stepped by kernels of their own.
  const bool is_foreach = software.foreach_step && training.second_moment <= MomentType::fp16;
  if (is_foreach && training.optimizer == Optimizer::adam)
    states.step_temporary += moment_size(training.second_moment);
  return states;
}

bool reduces_frozen(const Plan& plan, const SoftwareProfile& software) {
  return software.flattens_adapters && plan.training.lora.is_used() &&
         plan.parallel.zero_stage == 3 && sharding_group_size(plan.parallel) > 1;
}

double step_bytes(const Training& training, const SoftwareProfile& software) {
  Training usual = training;
  usual.optimizer = Optimizer::adam;
  usual.main_parameters = MainParameters::profile;
  usual.first_moment = usual.second_moment = MomentType::fp32;
  const auto kept = [&](const Training& of) {
    const StateBytes states = state_bytes(of, software);
    return states.weights + states.optimizer;
  };
  return std::max(0.0, software.optimizer_bytes + 2 * (kept(training) - kept(usual)));
}

}  // namespace windtunnel
