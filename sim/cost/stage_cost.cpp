#include "cost/stage_cost.hpp"

#include <algorithm>

#include "core/contracts.hpp"
#include "cost/codec_cost.hpp"
#include "cost/collective_cost.hpp"
#include "cost/kernel_cost.hpp"
#include "cost/model_operations.hpp"

namespace windtunnel {
namespace {

Bytes gradient_element(GradientType type) { return Bytes{type == GradientType::fp32 ? 4.0 : 2.0}; }

/// ZeRO 3 shards whole models, so the only stage has both embedding and head.
double edge_parameters(const StageCostInputs& in) {
  const int t = in.plan->parallel.tensor;
  return embedding_parameters(*in.model, t) + head_parameters(*in.model, t, in.plan->head_place());
}

PassBytes pass_bytes(const StageCostInputs& in) {
  const double layer = layer_matrix_parameters(*in.model, in.plan->parallel.tensor),
               edges = edge_parameters(in);
  const Bytes weight = element_size(in.plan->training.precision),
              gradient = gradient_element(in.plan->training.gradient_type);
  return {activation_size(*in.model, layer_shape(*in.plan, *in.software)), weight * layer,
          gradient * layer, weight * edges, gradient * edges};
}

/// A ring of `payload` in values of `element` bytes through a compressor, if there is one.
EncodedCollective encoded(const StageCostInputs& in, const std::optional<Compressor>& compressor,
                          RingKind kind, Bytes payload, Bytes element, int members) {
  if (!compressor) return {payload, {}, {}, {}, {}};
  return encode_ring(*compressor, in.node->device, kind, payload, element, members);
}

EncodedCollective encoded_activation(const StageCostInputs& in, Bytes payload) {
  return encoded(in, in.plan->compression.tensor_activations, RingKind::all_reduce, payload,
                 element_size(in.plan->training.precision), in.plan->parallel.tensor);
}
EncodedCollective encoded_gather(const StageCostInputs& in, Bytes payload) {
  return encoded(in, in.plan->compression.zero_gather, RingKind::all_gather, payload,
                 element_size(in.plan->training.precision), sharding_ways(in.plan->parallel));
}
EncodedCollective encoded_scatter(const StageCostInputs& in, Bytes payload) {
  const Compression& compression = in.plan->compression;
  const bool chosen = compresses_gradients(compression, static_cast<int>(in.stage.index()));
  return encoded(in, chosen ? compression.data_gradients : std::nullopt, RingKind::reduce_scatter,
                 payload, gradient_element(in.plan->training.gradient_type),
                 sharding_ways(in.plan->parallel));
}

/// The halves of an all-reduce share its codec.
Encoded encode(const StageCostInputs& in, Label label, Bytes payload) {
  const auto whole = [](const EncodedCollective& c, double share = 1) {
    return Encoded{c.payload, (c.encode + c.decode) * share};
  };
  constexpr double half = 0.5;
  switch (label) {
    case Label::reduce_activation:
      return whole(encoded_activation(in, payload));
    case Label::gather_activation:
    case Label::scatter_activation:
      return whole(encoded_activation(in, payload), half);
    case Label::gather_layer:
    case Label::gather_edges:
      return whole(encoded_gather(in, payload));
    case Label::scatter_layer:
    case Label::scatter_edges:
      return whole(encoded_scatter(in, payload));
    default:
      return {payload, {}};
  }
}

/// A ring over a group of replicas: what it takes in the node, or the node's share of it between nodes, whichever is longer. It
/// leaves a node through the NICs of its members. A gather or scatter is half of an all-reduce.
Seconds ring_time(const StageCostInputs& in, const DataGroup& group, const Operation& operation) {
  const Bytes payload = operation.payload;
  if (group.members == 1 || payload == Bytes{0}) return {};
  const bool whole = row_of(operation.label).kind == OperationKind::all_reduce;
  const Interconnect& wires = in.node->interconnect;
  const Seconds inside = whole ? in_node_all_reduce(wires, group.gpus_in_node, payload)
                               : in_node_all_gather(wires, group.gpus_in_node, payload);
  if (group.nodes == 1) return inside;
  const int t = in.plan->parallel.tensor;
  const double of_node =
      std::min(1.0, static_cast<double>(group.gpus_in_node.size()) * t / in.node->gpus);
  const double share = static_cast<double>(group.members - 1) / group.members;
  const Seconds half =
      payload * (share * t) / (in.node->effective_nic_rate() * (of_node * in.node->nics)) +
      in.fabric->latency + in.fabric->collective_latency;
  return std::max(inside, half * (whole ? 2.0 : 1.0));
}

/// A tensor all-reduce in the node.
Seconds in_node_time(const StageCostInputs& in, Bytes payload) {
  return in_node_all_reduce(in.node->interconnect, in.tensor_gpus, payload) *
         (in.software->in_node_collective_slowdown * in.node->in_node_collective_slowdown);
}

/// Of a collective while nobody else is on the network; nothing for tensor groups across nodes. A scattered message is gathered as
/// it was, whatever the codec of activations: half of an uncompressed all-reduce.
Seconds collective_time(const StageCostInputs& in, const Operation& operation) {
  switch (group_of(operation.label)) {
    case GroupKind::sharding:
      return ring_time(in, in.data, operation);
    case GroupKind::copies:
      return ring_time(in, in.copies, operation);
    case GroupKind::tensor:
      break;
  }
  if (in.plan->nodes_per_tensor_group != 1) return {};
  if (operation.label == Label::gather_message)
    return in_node_time(in, activation_size(*in.model, layer_shape(*in.plan, *in.software))) / 2;
  const Seconds time = in_node_time(in, operation.payload);
  return operation.label == Label::reduce_activation ? time : time / 2;
}

void set_collective_times(const StageCostInputs& in, PassOperations& pass) {
  for (std::vector<Operation>* list : {&pass.before, &pass.layer, &pass.after})
    for (Operation& operation : *list)
      if (is_collective(row_of(operation.label).kind))
        operation.time = collective_time(in, operation);
}

ChunkOperations chunk_operations(const StageCostInputs& in, const ChunkRole& chunk) {
  ChunkOperations operations = model_operations(in, chunk);
  PassContext context;
  context.plan = in.plan;
  context.software = in.software;
  context.chunk = chunk;
  context.bytes = pass_bytes(in);
  if (in.plan->training.recompute == Recompute::selective)
    context.attention_core = attention_core(in);
  context.encode = [&in](Label label, Bytes payload) { return encode(in, label, payload); };
  for (const OperationPass& pass : operation_passes()) pass.rewrite(operations, context);
  for (PassOperations& pass : operations.passes) set_collective_times(in, pass);
  return operations;
}

/// Sum of a value over all operations of a pass.
template <class Value>
auto sum_over(const PassOperations& pass, const Value& value) {
  decltype(value(Operation{})) edges{}, layer{};
  for (const Operation& operation : pass.before) edges += value(operation);
  for (const Operation& operation : pass.after) edges += value(operation);
  for (const Operation& operation : pass.layer) layer += value(operation);
  return edges + layer * static_cast<double>(pass.layers);
}

/// What of a pass crosses nodes: all-reduces, and the weight gradients beside them.
CrossNodeCollectives cross_node(const StageCostInputs& in, const PassOperations& pass) {
  CrossNodeCollectives cross;
  if (in.plan->nodes_per_tensor_group == 1) return cross;
  const auto all_reduces = [&pass](Overlap overlap) {
    return sum_over(pass, [overlap](const Operation& o) {
      if (!is_of_tensor_group(o.label) || o.overlap != overlap || o.label == Label::gather_message)
        return 0.0;
      return o.label == Label::reduce_activation ? 1.0 : 1.0 / 2;
    });
  };
  cross.exposed = all_reduces(Overlap::none);
  cross.overlappable = all_reduces(Overlap::beside_next);
  if (cross.overlappable > 0)
    cross.hidden_behind = sum_over(pass, [](const Operation& o) {
      return o.label == Label::weight_gradients ? o.time : Seconds{0};
    });
  return cross;
}

/// The CPU launches on while collectives run, so the floor holds for kernels and collectives together; those played as flows
/// are taken out again. What the kernels wait for is an operation of its own.
PassCost fold(PassOperations& pass, Seconds flows, double sharpness) {
  const PassTimes times = times_alone(pass);
  const auto at = [&times](Part part) { return times[static_cast<std::size_t>(part)]; };
  PassCost cost;
  cost.compute = at(Part::compute);
  cost.tensor_comm = at(Part::tensor_comm);
  cost.data_comm = at(Part::data_comm);
  cost.codec = at(Part::codec);
  cost.launch = sum_over(pass, [](const Operation& o) { return o.launch; });
  const Seconds work = cost.compute + cost.tensor_comm + cost.data_comm + cost.codec;
  cost.duration = std::max(work, with_launch_floor(work + flows, cost.launch, sharpness) - flows);
  pass.before.push_back(
      kernel(Label::launch_floor, std::max(Seconds{0}, cost.floor_share())));  // the sum is rounded
  return cost;
}

double chunk_parameters(const StageCostInputs& in, const ChunkRole& role) {
  const int t = in.plan->parallel.tensor;
  return role.layers * layer_parameters(*in.model, t) +
         (role.first ? embedding_parameters(*in.model, t) : 0) +
         (role.last ? head_parameters(*in.model, t, in.plan->head_place()) : 0);
}

ChunkCost chunk_cost(const StageCostInputs& in, const ChunkRole& role, Bytes payload) {
  ChunkCost cost;
  const auto operations = std::make_shared<ChunkOperations>(chunk_operations(in, role));
  cost.operations = operations;
  cost.forward_cross = cross_node(in, operations->at(Direction::forward));
  cost.backward_cross = cross_node(in, operations->at(Direction::backward));
  const auto pass = [&](Direction direction, const CrossNodeCollectives& cross) {
    const Seconds flows = uncontended_time(cross, payload, in.plan->parallel.tensor, *in.node);
    return fold(operations->at(direction), flows, in.software->launch.sharpness);
  };
  cost.forward = pass(Direction::forward, cost.forward_cross);
  cost.backward = pass(Direction::backward, cost.backward_cross);
  cost.input_gradient = pass(Direction::input_gradient, cost.backward_cross);
  cost.weight_gradient = pass(Direction::weight_gradient, {});
  cost.gradients = gradient_element(in.plan->training.gradient_type) * chunk_parameters(in, role);
  return cost;
}

}  // namespace

StageOperations operations_of(const StageCost& cost) {
  StageOperations operations;
  for (const ChunkCost& chunk : cost.chunks) operations.push_back(chunk.operations);
  return operations;
}

LayerShape layer_shape(const Plan& plan, const SoftwareProfile& software) {
  return {.microbatch = plan.training.micro_batch,
          .tensor = plan.parallel.tensor,
          .sequence_parallel = plan.parallel.sequence_parallel,
          .attention = plan.training.attention,
          .precision = plan.training.precision,
          .fused_kernels = software.fused_kernels};
}

Seconds uncontended_time(const CrossNodeCollectives& collectives, Bytes payload, int tensor_ways,
                         const NodeType& node) {
  if (collectives.exposed + collectives.overlappable == 0) return {};
  const Seconds one = ring_all_reduce_volume(payload, tensor_ways) /
                      (node.effective_nic_rate() * static_cast<double>(node.nics));
  return one * collectives.exposed +
         std::max(Seconds{0}, one * collectives.overlappable - collectives.hidden_behind);
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
  StageCost cost;
  const PassBytes bytes = pass_bytes(in);
  cost.tensor_payload = encoded_activation(in, bytes.activation).payload;
  double parameters = 0;
  ChunkRole before;
  const ChunkMap map = in.plan->chunk_map();
  for (int chunk = 0; chunk < parallel.virtual_pipeline; ++chunk) {
    const ChunkPlace place{in.stage, chunk};
    const ChunkRole role{in.plan->chunk_layers(in.stage), place == map.first(),
                         place == map.last()};
    const bool as_before = chunk > 0 && role == before;
    cost.chunks.push_back(as_before ? cost.chunks.back()
                                    : chunk_cost(in, role, cost.tensor_payload));
    before = role;
    cost.gradients += cost.chunks.back().gradients;
    parameters += chunk_parameters(in, role);
  }
  const double owners = parallel.zero_stage > 0 ? sharding_ways(parallel) : 1.0;
  cost.optimizer =
      memory_time(Bytes{in.software->optimizer_bytes * parameters / owners}, in.node->device);
  cost.message = stage_message_size(*in.model, *in.plan, *in.software);
  if (parallel.zero_stage == 3)
    cost.gathered_layer = encoded_gather(in, bytes.layer_parameters).payload;
  cost.parameters = element_size(in.plan->training.precision) * parameters;
  const double words = word_embedding_parameters(*in.model, parallel.tensor);
  const GradientType reduced = in.plan->training.gradient_type;
  cost.embedding_gradients =
      gradient_element(in.software->embedding_gradient_type.value_or(reduced)) * words;
  cost.embedding_share = gradient_element(reduced) * words;
  return cost;
}

}  // namespace windtunnel
