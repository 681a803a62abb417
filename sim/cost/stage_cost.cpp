#include "cost/stage_cost.hpp"

#include <algorithm>

#include "core/contracts.hpp"
#include "cost/codec_cost.hpp"
#include "cost/collective_cost.hpp"

namespace windtunnel {
namespace {

/// Kernel times of the pieces a stage is made of, on one rank.
struct Pieces {
  Seconds layer_forward{}, layer_backward{}, attention_core{}, backward_products{};
  Seconds layer_weight_gradient{},
      head_weight_gradient{};  ///< the part of a backward pass that can wait
  Seconds head_forward{}, head_backward{}, embedding{};
  Seconds
      all_reduce{};  ///< one tensor collective of one activation, in the node; zero when it crosses nodes
  Seconds receipt{};                        ///< gathering a scattered stage message, in the node
  Seconds gather{};                         ///< one layer's parameters, ZeRO 3; zero otherwise
  Seconds scatter{};                        ///< and its gradients
  Seconds edges_gather{}, edges_scatter{};  ///< embedding's and head's
  /// Codec work of one tensor collective, and of ZeRO 3's.
  Seconds all_reduce_codec{}, gather_codec{}, scatter_codec{}, edges_gather_codec{},
      edges_scatter_codec{};
};

/// The chunk whose cost is asked for: its part of the model.
struct ChunkRole {
  int layers = 0;
  bool first = false;  ///< has the embedding
  bool last = false;   ///< has the head
};

KernelContext kernel_context(const StageCostInputs& in) {
  const SoftwareProfile& software = *in.software;
  KernelContext context;
  context.device = &in.node->device;
  context.precision = in.plan->training.precision;
  context.compute_efficiency = software.compute_efficiency * in.node->compute_efficiency;
  context.head_size = in.model->head_size();
  context.flash_forward_efficiency = software.flash_forward_efficiency.value_or(0);
  context.flash_backward_efficiency = software.flash_backward_efficiency.value_or(0);
  return context;
}

LayerShape layer_shape(const Plan& plan, const SoftwareProfile& software) {
  return {.microbatch = plan.training.micro_batch,
          .tensor = plan.parallel.tensor,
          .sequence_parallel = plan.parallel.sequence_parallel,
          .attention = plan.training.attention,
          .precision = plan.training.precision,
          .fused_kernels = software.fused_kernels};
}

/// The weight gradients among backward products: every second one.
Seconds weight_gradient_time(const KernelWork& backward, const KernelContext& context,
                             double factor = 1) {
  Seconds time{};
  for (std::size_t i = 1; i < backward.linear.size(); i += 2)
    time += gemm_time(backward.linear[i], context, factor);
  return time;
}

bool gathers_parameters(const StageCostInputs& in) { return in.plan->parallel.zero_stage == 3; }

Bytes gradient_element(GradientType type) { return Bytes{type == GradientType::fp32 ? 4.0 : 2.0}; }

double layer_sharded(const StageCostInputs& in) {
  return gathers_parameters(in) ? layer_matrix_parameters(*in.model, in.plan->parallel.tensor) : 0;
}

/// ZeRO 3 shards whole models, so the only stage has both embedding and head.
double edges_sharded(const StageCostInputs& in) {
  if (!gathers_parameters(in)) return 0;
  const int t = in.plan->parallel.tensor;
  return embedding_parameters(*in.model, t) +
         head_parameters(*in.model, t, in.plan->parallel.pipeline);
}

/// A ring of `payload` in values of `element` bytes through the stage's compressor for its traffic, if there is one.
EncodedCollective encoded(const StageCostInputs& in, const std::optional<Compressor>& compressor,
                          RingKind kind, Bytes payload, Bytes element, int members) {
  if (!compressor) return {payload, {}, {}, {}, {}};
  return encode_ring(*compressor, in.node->device, kind, payload, element, members);
}

EncodedCollective encoded_activation(const StageCostInputs& in) {
  return encoded(in, in.plan->compression.tensor_activations, RingKind::all_reduce,
                 activation_size(*in.model, layer_shape(*in.plan, *in.software)),
                 element_size(in.plan->training.precision), in.plan->parallel.tensor);
}
EncodedCollective encoded_gather(const StageCostInputs& in, double parameters) {
  const Bytes element = element_size(in.plan->training.precision);
  return encoded(in, in.plan->compression.zero_gather, RingKind::all_gather, element * parameters,
                 element, in.plan->parallel.data);
}
EncodedCollective encoded_scatter(const StageCostInputs& in, double parameters) {
  const Compression& compression = in.plan->compression;
  const Bytes element = gradient_element(in.plan->training.gradient_type);
  const bool chosen = gathers_parameters(in) &&
                      compresses_gradients(compression, static_cast<int>(in.stage.index()));
  return encoded(in, chosen ? compression.data_gradients : std::nullopt, RingKind::reduce_scatter,
                 element * parameters, element, in.plan->parallel.data);
}

/// Parameters gathered over the data-parallel group, or gradients scattered: half an all-reduce in the node, or the node's share of
/// the ring through its NICs, whichever is longer.
Seconds gather_time(const StageCostInputs& in, Bytes payload) {
  if (in.data.members == 1 || payload == Bytes{0}) return {};
  const int t = in.plan->parallel.tensor;
  const Seconds inside = in_node_all_gather(in.node->interconnect, in.data.gpus_in_node, payload);
  if (in.data.nodes == 1) return inside;
  const double share = static_cast<double>(in.data.members - 1) / in.data.members;
  const Seconds across =
      payload * (share * t) / (in.node->effective_nic_rate() * static_cast<double>(in.node->nics)) +
      in.fabric->latency + in.fabric->collective_latency;
  return std::max(inside, across);
}

void add_layer_pieces(const StageCostInputs& in, const KernelContext& context, Pieces& p) {
  const LayerShape shape = layer_shape(*in.plan, *in.software);
  const KernelWork backward = layer_backward(*in.model, shape);
  const Seconds accumulation = memory_time(Bytes{in.software->gradient_accumulation_bytes *
                                                 layer_matrix_parameters(*in.model, shape.tensor)},
                                           in.node->device);
  p.layer_forward =
      kernel_time(layer_forward(*in.model, shape), context, 1, context.flash_forward_efficiency);
  p.backward_products = linear_time(backward, context);
  p.layer_backward =
      kernel_time(backward, context, 1, context.flash_backward_efficiency) + accumulation;
  p.layer_weight_gradient = weight_gradient_time(backward, context) + accumulation;
  p.attention_core = kernel_time(attention_core_forward(*in.model, shape), context, 1,
                                 context.flash_forward_efficiency);
}

void add_sharded_pieces(const StageCostInputs& in, Pieces& p) {
  const EncodedCollective gather = encoded_gather(in, layer_sharded(in)),
                          scatter = encoded_scatter(in, layer_sharded(in)),
                          edges_gather = encoded_gather(in, edges_sharded(in)),
                          edges_scatter = encoded_scatter(in, edges_sharded(in));
  p.gather = gather_time(in, gather.payload);
  p.scatter = gather_time(in, scatter.payload);
  p.edges_gather = gather_time(in, edges_gather.payload);
  p.edges_scatter = gather_time(in, edges_scatter.payload);
  p.gather_codec = gather.encode + gather.decode;
  p.scatter_codec = scatter.encode + scatter.decode;
  p.edges_gather_codec = edges_gather.encode + edges_gather.decode;
  p.edges_scatter_codec = edges_scatter.encode + edges_scatter.decode;
}

void add_tensor_pieces(const StageCostInputs& in, Pieces& p) {
  const EncodedCollective activation = encoded_activation(in);
  p.all_reduce_codec = activation.encode + activation.decode;
  if (in.plan->parts != 1) return;
  const auto all_reduce = [&](Bytes payload) {
    return in_node_all_reduce(in.node->interconnect, in.tensor_gpus, payload) *
           (in.software->in_node_collective_slowdown * in.node->in_node_collective_slowdown);
  };
  p.all_reduce = all_reduce(activation.payload);
  p.receipt = all_reduce(activation_size(*in.model, layer_shape(*in.plan, *in.software))) / 2;
}

Pieces pieces(const StageCostInputs& in) {
  const KernelContext context = kernel_context(in);
  const LayerShape shape = layer_shape(*in.plan, *in.software);
  const double head_factor = in.node->device.gemm.head_factor;
  const double traffic = in.software->cross_entropy_bytes;
  Pieces p;
  add_layer_pieces(in, context, p);
  add_sharded_pieces(in, p);
  add_tensor_pieces(in, p);
  const KernelWork backward = head_backward(*in.model, shape, traffic);
  p.head_forward = kernel_time(head_forward(*in.model, shape, traffic), context, head_factor);
  p.head_backward = kernel_time(backward, context, head_factor);
  p.head_weight_gradient = weight_gradient_time(backward, context, head_factor);
  p.embedding = kernel_time(embedding_pass(*in.model, shape), context);
  return p;
}

/// Launch times of one layer, forward and backward without recomputation.
struct LaunchTimes {
  Seconds forward{}, backward{};
};

LaunchTimes launch_times(const StageCostInputs& in) {
  const auto& floor = in.software->launch;
  const int tensor = in.plan->parallel.tensor;
  const double factor = floor.cluster_factor * in.node->launch_slowdown *
                        (tensor >= floor.wide_tensor_ways ? floor.wide_tensor_factor : 1.0);
  const Seconds collectives = tensor > 1 ? floor.collective * 2 : Seconds{0};
  return {(floor.layer_forward + collectives) * factor,
          (floor.layer_backward + collectives) * factor};
}

/// Launches of embedding and head, in either direction.
Seconds edge_launch(const StageCostInputs& in, const ChunkRole& role) {
  return launch_times(in).forward * (in.software->launch.head_share * role.last +
                                     in.software->launch.embedding_share * role.first);
}

/// A scattered message is gathered again inside the node on receipt: half an all-reduce. With sequence parallelism the next
/// layer wants it scattered.
Seconds receipt_gather(const StageCostInputs& in, const Pieces& p) {
  const bool gathers = in.software->gather_scattered_messages &&
                       in.software->scatter_pipeline_messages &&
                       !in.plan->parallel.sequence_parallel;
  return gathers ? p.receipt : Seconds{0};
}

/// What the operations of a sharded pass take, all but `edges`.
ShardedTimes sharded_times(const StageCostInputs& in, const Pieces& p, Seconds layer) {
  ShardedTimes times;
  if (!gathers_parameters(in)) return times;
  times.gather_edges = p.edges_gather;
  times.gather_layer = p.gather;
  times.layer = layer;
  times.scatter_layer = p.scatter;
  times.scatter_edges = p.edges_scatter;
  times.interference = in.software->exposed_gather_factor;
  times.prefetches = in.plan->parallel.zero_prefetch > 0;
  return times;
}

/// What the kernels of a pass wait for gathers and scatters, and are slowed by them.
Seconds exposed_collectives(const StageCostInputs& in, ShardedDirection direction, int layers,
                            const ShardedTimes& times) {
  if (!gathers_parameters(in)) return {};
  const auto operations = sharded_pass(direction, layers, in.plan->parallel.zero_prefetch);
  const Seconds alone = time_alone(operations, [&times](const ShardedOperation& operation) {
    return duration_of(operation, times);
  });
  return alone - times.layer * layers;
}

PassCost forward_pass(const StageCostInputs& in, const Pieces& p, const ChunkRole& role) {
  PassCost pass;
  pass.compute =
      p.layer_forward * role.layers + p.head_forward * role.last + p.embedding * role.first;
  pass.tensor_comm = p.all_reduce * (2 * role.layers + role.first) +
                     (role.first ? Seconds{0} : receipt_gather(in, p));
  pass.data_comm = exposed_collectives(in, ShardedDirection::forward, role.layers,
                                       sharded_times(in, p, p.layer_forward));
  pass.codec = p.all_reduce_codec * (2 * role.layers + role.first) + p.gather_codec * role.layers +
               p.edges_gather_codec;
  pass.launch = launch_times(in).forward * role.layers + edge_launch(in, role);
  return pass;
}

Seconds recomputation(const Plan& plan, const Pieces& p) {
  switch (plan.training.recompute) {
    case Recompute::none:
      return {};
    case Recompute::selective:
      return p.attention_core;
    case Recompute::full:
      return p.layer_forward;
  }
  return {};
}

bool recomputes_layers(const StageCostInputs& in) {
  return in.plan->training.recompute == Recompute::full;
}

/// What hides one backward all-reduce: a quarter of the layer's backward weight products, about one weight gradient.
Seconds hiding_work(const SoftwareProfile& software, const Pieces& p) {
  constexpr double products_per_collective = 4;
  return software.overlap_backward_tensor_collectives
             ? p.backward_products / products_per_collective
             : Seconds{0};
}

/// The part of one backward all-reduce that is not hidden behind `hiding`.
Seconds exposed_all_reduce(const StageCostInputs& in, const Pieces& p, Seconds hiding) {
  const Seconds gathered = in.plan->parallel.sequence_parallel ? p.all_reduce / 2 : Seconds{0};
  return gathered + std::max(Seconds{0}, p.all_reduce - gathered - hiding);
}

Seconds layer_backward(const StageCostInputs& in, const Pieces& p) {
  return p.layer_backward + recomputation(*in.plan, p);
}

PassCost backward_pass(const StageCostInputs& in, const Pieces& p, const ChunkRole& role,
                       Seconds hiding) {
  const int layers = role.layers, again = recomputes_layers(in) ? layers : 0;
  const Seconds layer = layer_backward(in, p);
  PassCost pass;
  pass.compute = layer * layers + p.head_backward * role.last + p.embedding * role.first;
  pass.tensor_comm = exposed_all_reduce(in, p, hiding) * (2 * layers) +
                     p.all_reduce * (2 * again + role.last) +
                     (role.last ? Seconds{0} : receipt_gather(in, p));
  pass.data_comm =
      exposed_collectives(in, ShardedDirection::backward, layers, sharded_times(in, p, layer));
  pass.codec = p.all_reduce_codec * (2 * layers + 2 * again + role.last) +
               (p.gather_codec + p.scatter_codec) * layers + p.edges_scatter_codec;
  pass.launch =
      launch_times(in).backward * layers + launch_times(in).forward * again + edge_launch(in, role);
  return pass;
}

/// The weight half of a split backward pass. Half of the backward launches are its own.
PassCost weight_gradient_pass(const StageCostInputs& in, const Pieces& p, const ChunkRole& role) {
  PassCost pass;
  pass.compute = p.layer_weight_gradient * role.layers + p.head_weight_gradient * role.last;
  pass.launch = launch_times(in).backward * (role.layers / 2.0);
  return pass;
}

/// The other half: with no weight gradients beside them, the tensor collectives are exposed.
PassCost input_gradient_pass(const StageCostInputs& in, const Pieces& p, const ChunkRole& role,
                             const PassCost& weights) {
  PassCost pass = backward_pass(in, p, role, Seconds{0});
  pass.compute -= weights.compute;
  pass.launch -= weights.launch;
  return pass;
}

double chunk_parameters(const StageCostInputs& in, const ChunkRole& role) {
  const int t = in.plan->parallel.tensor;
  return role.layers * layer_parameters(*in.model, t) +
         (role.first ? embedding_parameters(*in.model, t) : 0) +
         (role.last ? head_parameters(*in.model, t, in.plan->parallel.pipeline) : 0);
}

void add_collective_counts(const StageCostInputs& in, const Pieces& p, const ChunkRole& role,
                           ChunkCost& cost) {
  if (in.plan->parallel.tensor == 1) return;
  const int again = recomputes_layers(in) ? role.layers : 0;
  cost.forward_all_reduces = 2 * role.layers + role.first;
  const int exposed_backward = 2 * again + role.last;
  cost.backward_all_reduces = 2 * role.layers + exposed_backward;
  if (in.plan->parts == 1) return;
  cost.forward_cross.exposed = cost.forward_all_reduces;
  cost.backward_cross.exposed = exposed_backward;
  cost.backward_cross.overlappable = 2 * role.layers;
  cost.backward_cross.hidden_behind = hiding_work(*in.software, p) * (2 * role.layers);
}

/// The CPU launches on while collectives run, so the floor holds for kernels and collectives together; those played as flows
/// are taken out again.
void set_duration(PassCost& pass, Seconds flows, double sharpness) {
  const Seconds work = pass.compute + pass.tensor_comm + pass.data_comm + pass.codec;
  pass.duration = std::max(work, with_launch_floor(work + flows, pass.launch, sharpness) - flows);
}

/// With what is left of the pass, the launch floor included.
ShardedTimes sharded_operations(const PassCost& pass, int layers, ShardedTimes times) {
  times.edges = pass.duration - pass.data_comm - times.layer * layers;
  return times;
}

ChunkCost chunk_cost(const StageCostInputs& in, const Pieces& p, const ChunkRole& role,
                     Bytes payload) {
  const double q = in.software->launch.sharpness;
  ChunkCost cost;
  cost.layers = role.layers;
  cost.forward = forward_pass(in, p, role);
  cost.backward = backward_pass(in, p, role, hiding_work(*in.software, p));
  cost.weight_gradient = weight_gradient_pass(in, p, role);
  cost.input_gradient = input_gradient_pass(in, p, role, cost.weight_gradient);
  add_collective_counts(in, p, role, cost);
  const auto flows = [&](const CrossNodeCollectives& cross) {
    return uncontended_time(cross, payload, in.plan->parallel.tensor, *in.node);
  };
  const Seconds backward_flows = flows(cost.backward_cross);
  set_duration(cost.forward, flows(cost.forward_cross), q);
  set_duration(cost.backward, backward_flows, q);
  set_duration(cost.input_gradient, backward_flows, q);
  set_duration(cost.weight_gradient, Seconds{0}, q);
  cost.gradients = gradient_element(in.plan->training.gradient_type) * chunk_parameters(in, role);
  cost.sharded_forward =
      sharded_operations(cost.forward, role.layers, sharded_times(in, p, p.layer_forward));
  cost.sharded_backward =
      sharded_operations(cost.backward, role.layers, sharded_times(in, p, layer_backward(in, p)));
  return cost;
}

}  // namespace

Seconds uncontended_time(const CrossNodeCollectives& collectives, Bytes payload, int tensor_ways,
                         const NodeType& node) {
  if (collectives.exposed + collectives.overlappable == 0) return {};
  const Seconds one = ring_all_reduce_volume(payload, tensor_ways) /
                      (node.effective_nic_rate() * static_cast<double>(node.nics));
  return one * static_cast<double>(collectives.exposed) +
         std::max(Seconds{0},
                  one * static_cast<double>(collectives.overlappable) - collectives.hidden_behind);
}

Bytes stage_message_size(const Transformer& model, const Plan& plan,
                         const SoftwareProfile& software) {
  const bool scattered = software.scatter_pipeline_messages || plan.parallel.sequence_parallel;
  return activation_size(model, layer_shape(plan, software)) /
         (scattered ? plan.parallel.tensor : 1.0);
}

StageCost stage_cost(const StageCostInputs& in) {
  WT_EXPECT(in.model && in.plan && in.software && in.node && in.fabric);
  const Parallel& parallel = in.plan->parallel;
  const Pieces p = pieces(in);
  StageCost cost;
  cost.tensor_payload = encoded_activation(in).payload;
  double parameters = 0;
  for (int chunk = 0; chunk < parallel.virtual_pipeline; ++chunk) {
    const ChunkRole role{in.plan->chunk_layers(in.stage), in.plan->is_first(in.stage) && chunk == 0,
                         in.plan->is_last(in.stage) && chunk == parallel.virtual_pipeline - 1};
    cost.chunks.push_back(chunk_cost(in, p, role, cost.tensor_payload));
    cost.gradients += cost.chunks.back().gradients;
    parameters += chunk_parameters(in, role);
  }
  const double owners = parallel.zero_stage > 0 ? parallel.data : 1.0;
  cost.optimizer =
      memory_time(Bytes{in.software->optimizer_bytes * parameters / owners}, in.node->device);
  cost.message = stage_message_size(*in.model, *in.plan, *in.software);
  cost.gathered_layer = encoded_gather(in, layer_sharded(in)).payload;
  cost.scattered_layer = encoded_scatter(in, layer_sharded(in)).payload;
  cost.gathered_edges = encoded_gather(in, edges_sharded(in)).payload;
  cost.scattered_edges = encoded_scatter(in, edges_sharded(in)).payload;
  cost.parameters = element_size(in.plan->training.precision) * parameters;
  const double words = word_embedding_parameters(*in.model, parallel.tensor);
  const GradientType reduced = in.plan->training.gradient_type;
  cost.embedding_gradients =
      gradient_element(in.software->embedding_gradient_type.value_or(reduced)) * words;
  cost.embedding_share = gradient_element(reduced) * words;
  return cost;
}

}  // namespace windtunnel
