#include "cost/stage_cost.hpp"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <utility>

#include "core/contracts.hpp"
#include "cost/adapters.hpp"
#include "cost/codec_cost.hpp"
#include "cost/collective_algorithm.hpp"
#include "cost/collective_cost.hpp"
#include "cost/end_of_iteration.hpp"
#include "cost/expert_times.hpp"
#include "cost/kernel_cost.hpp"
#include "cost/model_operations.hpp"
#include "operations/overlapped.hpp"

namespace windtunnel {
namespace {

/// One fp8 value of a dispatched token: a scale of four bytes for 128 of them (DeepEP's README).
constexpr double fp8_value = 1 + 4.0 / 128;

void add_exchanges(const StageCostInputs& in, PassBytes& bytes) {
  const Transformer::Experts& moe = *in.model->moe;
  const double values =
      local_tokens(*in.model, layer_shape(*in.plan, *in.software)) * in.model->hidden;
  const Bytes element = element_size(in.plan->training.precision);
  const SoftwareProfile::Experts& stack = experts_of(in);
  const double copies = token_copies(moe, in.experts, stack.dispatch).gpus;
  const double gathered = stack.dispatch == ExpertDispatch::all_gather ? copies : moe.top_k;
  bytes.combine = element * (copies * values);
  const Bytes quantized{fp8_value * copies * values};
  bytes.dispatch = stack.fp8_dispatch ? quantized : bytes.combine;
  bytes.gradient_dispatch = stack.fp8_gradient_dispatch ? quantized : bytes.combine;
  bytes.expert_inputs = element * (values * gathered * in.plan->parallel.expert_tensor);
}

/// Adapter parameters of a layer on one rank.
double layer_adapter_parameters(const Transformer& model, const Plan& plan) {
  const Lora& lora = plan.training.lora;
  return (adapter_parameters(model, lora, LayerHalf::attention) +
          adapter_parameters(model, lora, LayerHalf::feed_forward)) /
         plan.parallel.tensor;
}

PassBytes pass_bytes(const StageCostInputs& in) {
  const double layer = layer_matrix_parameters(*in.model, in.plan->parallel.tensor);
  const Bytes weight = linear_weight_size(*in.plan, *in.software),
              gradient = element_size(in.plan->training.gradient_type);
  const LayerShape shape = layer_shape(*in.plan, *in.software);
  PassBytes bytes;
  bytes.activation = activation_size(*in.model, shape);
  bytes.logits = logits_size(*in.model, shape) * (1.0 + in.model->mtp_layers);
  bytes.weight = weight;
  bytes.gradient = gradient;
  const double adapters = layer_adapter_parameters(*in.model, *in.plan);
  const Training& training = in.plan->training;
  bytes.layer_parameters =
      gathered_matrix_size(training, weight) * layer + element_size(training.precision) * adapters;
  const bool reduces_layer = !training.lora.is_used() || reduces_frozen(*in.plan, *in.software);
  bytes.layer_gradients = gradient * ((reduces_layer ? layer : 0) + adapters);
  bytes.key_values = key_value_size(*in.model, shape);
  bytes.attended = attended_size(*in.model, shape);
  if (in.model->moe) add_exchanges(in, bytes);
  return bytes;
}

/// Share of an exchange's payload that a rank sends. The payload has a copy of each token for each GPU, without the tokens that experts
/// drop.
double exchanged_share(const StageCostInputs& in) {
  const Transformer::Experts& moe = *in.model->moe;
  const ExpertDispatch dispatch = experts_of(in).dispatch;
  return exchange_bytes(Bytes{1}, token_copies(moe, in.experts, dispatch), in.experts, dispatch)
             .sent /
         Bytes{1} * exchanged_load(dispatch, kept_share(moe));
}

/// Compression of a ring inside a pass.
struct CompressedRing {
  const std::optional<Compressor>& compressor;
  RingKind kind;
  Bytes element;  ///< one value
  int members;
};

CompressedRing compressed_ring(const StageCostInputs& in, Label label) {
  static const std::optional<Compressor> none;
  const Compression& compression = in.plan->compression;
  const Parallel& parallel = in.plan->parallel;
  const LabelRow& row = row_of(label);
  const Bytes element = element_size(in.plan->training.precision);
  if (row.group == GroupKind::tensor && label != Label::gather_message)
    return {compression.tensor_activations, RingKind::all_reduce, element, parallel.tensor};
  const int members = row.group == GroupKind::expert_data ? expert_data_parallel_size(parallel)
                                                          : sharding_group_size(parallel);
  if (row.kind == OperationKind::all_gather && row.traffic == Traffic::zero_gather)
    return {compression.zero_gather, RingKind::all_gather, element, members};
  if (row.kind != OperationKind::reduce_scatter ||
      (row.traffic != Traffic::data_gradients && row.traffic != Traffic::zero_scatter))
    return {none, RingKind::all_reduce, element, 1};
  const bool chosen = compresses_gradients(compression, static_cast<int>(in.stage.index()));
  return {chosen ? compression.data_gradients : none, RingKind::reduce_scatter,
          element_size(in.plan->training.gradient_type), members};
}

/// Without a device as it was.
EncodedCollective encoded(const StageCostInputs& in, Label label, Bytes payload) {
  const CompressedRing ring = compressed_ring(in, label);
  if (!ring.compressor || in.node == nullptr) return {payload, {}, {}, {}, {}};
  return encode_ring(*ring.compressor, in.node->device, ring.kind, payload, ring.element,
                     ring.members);
}

KeptByCodec kept_of_message(const StageCostInputs& in, Label label, Bytes payload) {
  const Compression& compression = in.plan->compression;
  const std::optional<Compressor>& compressor = label == Label::activation_message
                                                    ? compression.pipeline_forward
                                                    : compression.pipeline_backward;
  if (!compressor) return {};
  return kept_of_message(*compressor, stage_message(*in.model, *in.plan, payload));
}

/// The halves of an all-reduce share its codec.
Encoded encode(const StageCostInputs& in, Label label, Bytes payload) {
  if (row_of(label).kind == OperationKind::message)
    return {payload, {}, kept_of_message(in, label, payload)};
  const CompressedRing ring = compressed_ring(in, label);
  if (!ring.compressor) return {payload, {}, {}};
  const EncodedCollective c = encoded(in, label, payload);
  const bool is_half = label == Label::gather_activation || label == Label::scatter_activation;
  const bool reduces = ring.kind == RingKind::reduce_scatter;
  return {c.payload, (c.encode + c.decode) * (is_half ? 1.0 / 2 : 1.0),
          (reduces ? kept_of_gradients(*ring.compressor, payload, ring.element, ring.members)
                   : kept_of_ring(*ring.compressor, payload, ring.element, ring.members))};
}

/// A collective over a group of replicas, or of a sequence's parts: what it takes in the node, or the node's share of it between nodes, whichever is longer. It
/// leaves a node through the NICs of its members.
Seconds ring_time(const StageCostInputs& in, const DataGroup& group, const Operation& operation) {
  const Bytes payload = operation.payload;
  if (group.members == 1 || payload == Bytes{0}) return {};
  const RingKind kind = ring_kind_of(operation.label);
  const bool whole = kind == RingKind::all_reduce;
  const Interconnect& wires = in.node->interconnect;
  const auto in_node = [&](Bytes bytes) {
    return in_node_ring(wires, group.gpus_in_node, bytes, kind);
  };
  if (group.nodes == 1) return in_node_collective(wires, group.gpus_in_node, payload, kind);
  const double t = in.plan->parallel.tensor / group.ranks_of_tensor_group;  // rings side by side
  const double of_node =
      std::min(1.0, static_cast<double>(group.gpus_in_node.size()) * t / in.node->gpus);
  const BytesPerSecond rate = in.node->effective_nic_rate() * (of_node * in.node->nics / t);
  CrossingTask task{payload,
                    group.members,
                    group.nodes,
                    rate,
                    std::max(1, static_cast<int>(std::lround(of_node * in.node->nics / t))),
                    in.fabric->collective_latency,
                    hop_in_node(wires),
                    in_node,
                    {},
                    wires.switch_channels,
                    links_of(*in.node, group.gpus_in_node),
                    kind,
                    in.software->gathers_by_pat,
                    std::max(1.0, t / (of_node * in.node->nics))};
  if (!whole) {
    const double calls = operation.calls;
    task.payload = payload / calls;
    const NodeCrossing taken = crossing(task);
    const Seconds inside = taken.protocol == "Simple" ? in_node(payload) : taken.in_node * calls;
    return (in.fabric->latency + taken.latency) * calls +
           std::max(inside, taken.volume * calls / rate);
  }
  if (reduces_in_switch(wires, group.gpus_in_node.size()))
    task.in_switch = [&](Bytes bytes) {
      return in_switch_all_reduce(wires, group.gpus_in_node.size(), bytes, group.nodes);
    };
  return in.fabric->latency * 2 + time_alone(task, crossing(task));
}

/// A tensor collective in the node, without the stack's overhead.
Seconds in_node_time(const StageCostInputs& in, Bytes payload, RingKind kind) {
  return in_node_collective(in.node->interconnect, in.tensor_gpus, payload, kind) *
         (in.software->in_node_collective_slowdown * in.node->in_node_collective_slowdown);
}

/// The longer of its parts inside nodes and between them.
Seconds expert_time(const StageCostInputs& in, const Operation& operation) {
  const auto [inside, between] = expert_collective_times(in, operation, expert_load_of(in));
  return std::max(inside, between);
}

/// Time to copy a tensor that the stack reads and writes once more around its gather or scatter.
Seconds copy_time(const StageCostInputs& in, Bytes payload) {
  if (!in.software->copies_tensor_collectives) return {};
  return memory_time(payload * 2.0, in.node->device);
}

/// Asynchronous tensor parallelism, t ranks: a gather or scatter of `alone` in t - 1 pieces, each copied while the product P of another is
/// computed; what is left to wait for is  alone - min(alone, P (t - 1) / t).  A scatter ends with the sum of the t pieces, read and written
/// once; nothing else is copied. _pipelined_multi_all_gather_and_consume and _pipelined_produce_and_all2all in torch/distributed/
/// _symmetric_memory/__init__.py, PyTorch 2.8, where the product and its collective are neighbours (fuse_all_gather_matmul and
/// fuse_matmul_reduce_scatter in torch/_inductor/fx_passes/micro_pipeline_tp.py). Limit: a product in pieces is taken to last as long.
Seconds time_in_pieces(const StageCostInputs& in, const Operation& operation, Seconds alone) {
  const double pieces = in.plan->parallel.tensor;
  const Seconds left =
      alone - std::min(alone, operation.products / operation.share * ((pieces - 1) / pieces));
  if (operation.label == Label::gather_activation) return left;
  return left + memory_time(operation.payload * (1 + 1 / pieces), in.node->device);
}

/// A tensor all-reduce across nodes, or a half of one, with all NICs of the node to itself. Gathers of messages are left out.
Seconds crossing_time(const StageCostInputs& in, const Operation& operation) {
  if (operation.label == Label::gather_message) return {};
  const Seconds whole = ring_all_reduce_volume(operation.payload, in.plan->parallel.tensor) /
                        (in.node->effective_nic_rate() * static_cast<double>(in.node->nics));
  return operation.label == Label::reduce_activation ? whole : whole / 2;
}

/// Time of a collective on an idle network; zero for tensor groups across nodes. A scattered message is gathered as
/// it was, whatever the codec of activations.
Seconds collective_time(const StageCostInputs& in, const Operation& operation) {
  switch (group_of(operation.label)) {
    case GroupKind::axis: {
      const auto group = in.along.find(operation.axis);
      return group == in.along.end() ? Seconds{0} : ring_time(in, group->second, operation);
    }
    case GroupKind::sharding:
    case GroupKind::replicas:
      return ring_time(in, in.data, operation);
    case GroupKind::copies:
      return ring_time(in, in.copies, operation);
    case GroupKind::experts:
    case GroupKind::expert_tensor:
      return expert_time(in, operation);
    case GroupKind::tensor:
      break;
    case GroupKind::expert_data:
      return ring_time(in, in.expert_copies, operation);
    case GroupKind::embedding:
      WT_UNREACHABLE();  // not in passes
  }
  if (in.plan->nodes_per_tensor_group > 1) return crossing_time(in, operation);
  if (operation.label == Label::gather_message)
    return in_node_time(in, activation_size(*in.model, layer_shape(*in.plan, *in.software)),
                        RingKind::all_gather);
  const Seconds overhead =
      in.software->tensor_collective_overhead * in.node->collective_overhead_factor;
  const Seconds time = in_node_time(in, operation.payload, ring_kind_of(operation.label));
  if (operation.label == Label::reduce_activation) return time + overhead;
  if (operation.products > Seconds{0}) return overhead + time_in_pieces(in, operation, time);
  return time + overhead + copy_time(in, operation.payload);
}

void set_collective_times(const StageCostInputs& in, PassOperations& pass) {
  for (std::vector<Operation>* list : {&pass.before, &pass.layer, &pass.after})
    for (Operation& operation : *list)
      if (is_collective(row_of(operation.label).kind)) {
        Operation alone = operation;
        alone.payload = operation.payload / operation.share;
        operation.time = collective_time(in, alone) * operation.share;
      }
}

/// Copies of a layer's activations to the host or back overlap with its other operations, at the rate of the link; kernels wait for what
/// lasts longer.
void set_copy_times(const StageCostInputs& in, PassOperations& pass) {
  Seconds kernels{};
  for (const Operation& operation : pass.layer)
    if (operation.overlap == Overlap::none) kernels += operation.time;
  for (Operation& operation : pass.layer)
    if (operation.label == Label::activation_copies) {
      const Seconds copied = operation.payload / in.node->host->effective_link();
      operation.time = std::max(Seconds{0}, copied - kernels);
    }
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

/// Without a launch floor. Copies to the host and back are a part of `duration` alone.
PassCost cost_of(const PassTimes& times) {
  PassCost cost{times, {}, {}};
  for (const Part part : parts_of_pass) cost.duration += times[part];
  cost.duration += times[Part::other];
  return cost;
}

/// Puts operations of the host around those of a pass.
void add_host(PassOperations& pass, Operation read, Operation floor) {
  pass.before.insert(pass.before.begin(), std::move(read));
  pass.after.push_back(std::move(floor));
}

/// The CPU launches on while collectives run, so the floor holds for kernels and collectives together. What the kernels wait for is an
/// operation of its own.
/// Before them it may wait for the host, which reads a microbatch.
PassCost fold(PassOperations& pass, Seconds read, double sharpness) {
  PassCost cost = cost_of(times_alone(pass));
  pass.floor = cost.floor = {.launch = sum_over(pass, [](const Operation& o) { return o.launch; }),
                             .sharpness = sharpness};
  const Seconds work = cost.duration, launched = with_launch_floor(work, cost.floor);
  cost.duration = read + launched;
  add_host(pass, kernel(Label::batch_read, read), kernel(Label::launch_floor, launched - work));
  return cost;
}

/// Time the GPU waits while the host reads a microbatch (SoftwareProfile::BatchRead): launches, and broadcasts of a few bytes over the
/// tensor group, half of the least all-reduce each; none of groups across nodes.
Seconds batch_read(const StageCostInputs& in, const ChunkRole& chunk) {
  const auto& read = in.software->batch_read;
  if (!read || !(read->on_every_stage || chunk.first || chunk.last)) return {};
  const SoftwareProfile::LaunchFloor& launch = in.software->launch;
  const Seconds launches = launch.kernel * static_cast<double>(read->kernels) +
                           launch.collective * static_cast<double>(read->collectives);
  const Seconds broadcast =
      in.plan->nodes_per_tensor_group == 1
          ? in_node_all_reduce(in.node->interconnect, in.tensor_gpus, Bytes{1}) / 2
          : Seconds{0};
  return launches * in.node->launch_slowdown + broadcast * static_cast<double>(read->collectives);
}

ChunkCost chunk_cost(const StageCostInputs& in, const ChunkRole& role) {
  ChunkCost cost;
  const auto operations = std::make_shared<ChunkOperations>(chunk_operations(in, role));
  cost.operations = operations;
  const auto pass = [&](Direction direction) {
    const Seconds read = direction == Direction::forward ? batch_read(in, role) : Seconds{0};
    return fold(operations->at(direction), read, in.software->launch.sharpness);
  };
  cost.forward = pass(Direction::forward);
  cost.backward = pass(Direction::backward);
  cost.input_gradient = pass(Direction::input_gradient);
  cost.weight_gradient = pass(Direction::weight_gradient);
  cost.parameters = count_parameters(operations->at(Direction::forward));
  return cost;
}

EndInputs end_inputs(const StageCostInputs& in, const ParameterCounts& parameters) {
  return {in.model, in.plan, in.software, in.node, in.stage, parameters};
}

/// Factor by which kernels take longer while exchanges occupy multiprocessors of their own.
double slowdown_under_exchanges(const StageCostInputs& in) {
  const double all = in.node->device.multiprocessors;
  const double taken = std::min<double>(experts_of(in).exchange_multiprocessors, all - 1);
  return all / (all - taken);
}

/// Microbatches of the whole iteration, even if only a part of it is simulated (Plan::microbatches of a fold).
double microbatches_of_iteration(const Plan& plan) {
  return microbatches_of(plan.training, plan.parallel);
}

/// True if exchanges overlap with another microbatch's kernels. With stages, Megatron-Core asks for several chunks on each: __post_init__
/// in megatron/core/transformer/transformer_config.py, Megatron-Core 0.15.
bool hides_exchanges(const StageCostInputs& in) {
  const Parallel& parallel = in.plan->parallel;
  return experts_of(in).overlap_exchanges && !parallel.schedule->overlaps_passes &&
         microbatches_of_iteration(*in.plan) > 1 &&
         (parallel.pipeline == 1 || parallel.virtual_pipeline > 1);
}

/// Share of passes that overlap with none of the other direction, while the pipeline fills and drains: of the v chunks of m
/// microbatches 2 (p - 1 - stage) + (v - 1) p + 1, or 1 without stages (get_pp_rank_microbatches in
/// megatron/core/pipeline_parallel/schedules.py, Megatron-Core 0.15; combined_1f1b.py); on average over the stages v p of v m.
double share_alone(const Plan& plan) {
  return std::min(1.0, plan.parallel.pipeline / microbatches_of_iteration(plan));
}

/// Expected largest of n standard normal values (Blom 1958, Statistical Estimates and Transformed Beta-Variables).
double largest_of(double n) {
  constexpr double alpha = 0.375;
  if (n <= 1) return 0;
  return std::sqrt(2.0) * boost::math::erf_inv(2 * (n - alpha) / (n + 1 - 2 * alpha) - 1);
}

/// Slows down the work of a node itself: kernels and collectives inside it.
void slow_passes(const StageCostInputs& in, ChunkOperations& operations) {
  const double factor = slowest_node_factor(*in.node, *in.plan);
  if (factor == 1) return;
  const auto is_in_node = [&](Label label) {
    const Part part = row_of(label).part;
    return part == Part::compute || part == Part::codec ||
           (part == Part::tensor_comm && in.plan->nodes_per_tensor_group == 1);
  };
  for (PassOperations& pass : operations.passes)
    pass.for_each([&](Operation& operation) {
      if (!is_in_node(operation.label)) return;
      slow_down(operation, factor);
      for (Seconds* products :
           {&operation.products, &operation.gathered_products, &operation.scattered_products})
        *products *= factor;
    });
}

/// Kernels of a layer with experts up to its first exchange, between exchanges, and behind the last; the last exchange, and those before it.
struct ExchangedLayer {
  Seconds before{}, between{}, behind{}, last{}, others{};
};
ExchangedLayer exchanged_layer(const std::vector<Operation>& layer) {
  ExchangedLayer result;
  for (const Operation& operation : layer) {
    const bool in_dense_layers =
        operation.label == Label::feed_forward || operation.label == Label::recomputed_feed_forward;
    const Seconds time = operation.share > 0 ? operation.time / operation.share : Seconds{0};
    if (is_exchange(operation.label)) {
      result.others += result.last;
      result.last = time;
      result.between += result.behind;
      result.behind = Seconds{0};
    } else if (row_of(operation.label).part == Part::compute && !in_dense_layers) {
      (result.last > Seconds{0} ? result.behind : result.before) += time;
    }
  }
  return result;
}

/// Exchanges overlapped with the kernels of another microbatch, as Megatron-Core's layers run them (TransformerLayerSchedulePlan::run in
/// megatron/core/models/common/model_chunk_schedule_plan.py, Megatron-Core 0.15):
///   combine's gradients with attention, dispatch with the experts' gradients, its gradients with experts, combine with
///   attention's gradients
/// Kernels lose multiprocessors to an exchange for as long as it lasts (share s of all), and in turn make it take f times as long. Of an
/// exchange X and the kernels K that overlap with it, what is left to wait for is
///   s f X  where kernels last, f X (1 - s) <= K, else  X + K ((1 - 1/f) / (1 - s) - 1)   [own]
/// Limits: passes that run alone count on average over all passes; of exchanges that are simulated as flows what hides is not simulated.
void hide_exchanges(const StageCostInputs& in, ChunkOperations& operations) {
  if (!hides_exchanges(in)) return;
  const ExchangedLayer forward = exchanged_layer(operations.at(Direction::forward).layer),
                       backward = exchanged_layer(operations.at(Direction::backward).layer);
  const double free = 1 / slowdown_under_exchanges(in), slowed = experts_of(in).exchange_slowdown,
               alone = share_alone(*in.plan);
  const auto left = [&](Seconds exchanges, Seconds kernels) {
    if (exchanges == Seconds{0}) return 1.0;
    const double overlapped = (1 - free) * slowed,
                 behind = 1 + kernels / exchanges * ((1 - 1 / slowed) / free - 1);
    return alone + (1 - alone) * std::min(1.0, std::max(overlapped, behind));
  };
  const auto hide = [](PassOperations& pass, double others, double last) {
    bool is_last = true;
    for (auto operation = pass.layer.rbegin(); operation != pass.layer.rend(); ++operation) {
      if (!is_exchange(operation->label)) continue;
      operation->exposed = is_last ? last : others;
      slow_down(*operation, operation->exposed);
      is_last = false;
    }
  };
  const double last_back = left(backward.last, forward.between);
  hide(operations.at(Direction::forward), left(forward.others, backward.between),
       left(forward.last, backward.behind));
  for (const Direction direction : {Direction::backward, Direction::input_gradient})
    hide(operations.at(direction), left(backward.others, forward.before), last_back);
}

/// The forward pass of `ahead` and the backward pass of `back` at once. What the CPU takes longer to launch the block than it runs is
/// the forward pass's.
void overlap(const StageCostInputs& in, ChunkCost& ahead, ChunkCost& back) {
  const ChunkOperations& other = *back.operations;
  PassOperations block =
      overlapped({ahead.operations->at(Direction::forward), other.at(Direction::input_gradient),
                  other.at(Direction::weight_gradient)},
                 slowdown_under_exchanges(in));
  const auto times = times_of_block(block);
  const auto cost = [&times](PassOfBlock of) { return cost_of(times[of]); };
  ahead.overlapped_forward = cost(PassOfBlock::forward);
  back.overlapped_input_gradient = cost(PassOfBlock::input_gradient);
  back.overlapped_weight_gradient = cost(PassOfBlock::weight_gradient);
  const Seconds work = ahead.overlapped_forward.duration + back.overlapped_input_gradient.duration +
                       back.overlapped_weight_gradient.duration;
  block.floor = {.launch = sum_over(block, [](const Operation& o) { return o.launch; }),
                 .sharpness = in.software->launch.sharpness};
  const Seconds floor = with_launch_floor(work, block.floor) - work;
  const auto kernels = [](const PassCost& pass) {
    return pass.of(Part::compute) + pass.of(Part::codec);
  };
  // The block's floor is the forward pass's, with which the others overlap.
  ahead.overlapped_forward.floor = block.floor;
  ahead.overlapped_forward.floor.elsewhere = work - ahead.overlapped_forward.duration;
  ahead.overlapped_forward.floor.kernels_elsewhere =
      kernels(back.overlapped_input_gradient) + kernels(back.overlapped_weight_gradient);
  ahead.overlapped_forward.duration += floor;
  const auto of_forward = [](Operation operation) {
    operation.of = PassOfBlock::forward;
    return operation;
  };
  // The first operation of a stream of collectives waits for the block's first operation, and so for its messages.
  add_host(block, of_forward(kernel(Label::batch_read, Seconds{0})),
           of_forward(kernel(Label::launch_floor, floor)));
  const auto operations = std::make_shared<ChunkOperations>(*ahead.operations);
  operations->at(Direction::overlapped) = std::move(block);
  ahead.operations = operations;
}

}  // namespace

bool overlaps_passes(const Plan& plan) {
  return plan.parallel.schedule->overlaps_passes && plan.nodes_per_tensor_group == 1;
}

Seconds launch_delay(const Plan& plan, const SoftwareProfile& software) {
  const SoftwareProfile::LaunchFloor& launch = software.launch;
  const bool crosses_nodes = std::ranges::any_of(plan.devices, [&](const PlanDevice& device) {
    const bool is_in_pipeline = device.replica == 0 && device.group_node == 0;
    return (is_in_pipeline || launch.per_rank_in == DelayedLaunches::jobs) &&
           device.node != plan.devices.front().node;
  });
  return crosses_nodes ? launch.collective_per_rank * (plan.parallel.tensor - 1.0) : Seconds{};
}

StageOperations operations_of(const StageCost& cost) {
  StageOperations operations;
  for (const ChunkCost& chunk : cost.chunks) operations.push_back(chunk.operations);
  return operations;
}

namespace {
bool recomputes_operations(const Plan& plan, const SoftwareProfile& software) {
  return plan.training.recompute != Recompute::none &&
         software.recomputed_unit == RecomputedUnit::operations;
}

/// One mask for all samples of a microbatch, in 16 bits: get_ltor_masks_and_position_ids in megatron/utils.py, Megatron-LM 1.1.5, where
/// documents are not masked from each other.
Bytes mask_size(const Transformer& model) {
  return element_size(Precision::fp16) * (static_cast<double>(model.sequence) * model.sequence);
}

/// CPU time to launch a tensor collective.
Seconds collective_launch(const StageCostInputs& in) {
  return (in.software->launch.collective + launch_delay(*in.plan, *in.software)) *
         in.node->launch_slowdown;
}

double taken_by_collectives(const StageCostInputs& in) {
  constexpr double most = 0.99;
  return std::min(
      most, in.software->exposed_gather_factor.value_or(in.node->device.taken_by_collectives()));
}

/// chunk_operations() of one load of experts, with exchanges that nothing hides.
ChunkOperations operations_at_load(const StageCostInputs& in, const ChunkRole& chunk) {
  ChunkOperations operations = model_operations(in, chunk);
  PassContext context;
  context.plan = in.plan;
  context.software = in.software;
  if (in.node != nullptr) context.taken_by_collectives = taken_by_collectives(in);
  context.memory_time = [&in](Bytes traffic) {
    return in.node == nullptr ? Seconds{0} : memory_time(traffic, in.node->device);
  };
  context.chunk = chunk;
  context.bytes = pass_bytes(in);
  context.model_shares_experts = in.model->moe && in.model->moe->shared_ffn_hidden > 0;
  context.halves_are_parallel = in.model->parallel_residual;
  const bool cuts_attention =
      in.plan->parallel.context > 1 && in.plan->parallel.context_method == ContextMethod::ring;
  if (in.plan->training.recompute == Recompute::selective || cuts_attention)
    context.attention_core = attention_core(in);
  if (in.plan->training.recompute == Recompute::selective)
    context.recomputed_parts = recomputed_parts(in);
  if (cuts_attention) context.core_backward = flash_core_backward(in);
  if (recomputes_operations(*in.plan, *in.software)) {
    context.attention_again = half_again(in, LayerHalf::attention);
    context.feed_forward_again = half_again(in, LayerHalf::feed_forward);
    if (in.model->moe) context.experts_again = experts_again(in);
  }
  if (in.model->moe)
    context.expert_matrix = static_cast<double>(in.model->hidden) * in.model->moe->ffn_hidden /
                            in.plan->parallel.expert_tensor;
  if (in.node != nullptr) {
    context.collective_launch = collective_launch(in);
    context.launch_slowdown = in.node->launch_slowdown;
  }
  if (has_codecs(in.plan->compression))
    context.encode = [&in](Label label, Bytes payload) { return encode(in, label, payload); };
  for (const OperationPass& pass : operation_passes()) pass.rewrite(operations, context);
  if (in.software->sends_mask) operations.message.payload += mask_size(*in.model);
  if (in.node == nullptr) return operations;
  for (PassOperations& pass : operations.passes) {
    set_collective_times(in, pass);
    set_copy_times(in, pass);
  }
  return operations;
}
}  // namespace

ChunkOperations chunk_operations(const StageCostInputs& given, const ChunkRole& chunk) {
  StageCostInputs in = given;
  in.seen_share = chunk.seen_share;
  if (given.node == nullptr) return operations_at_load(in, chunk);
  if (!given.model->moe) {
    ChunkOperations operations = operations_at_load(in, chunk);
    slow_passes(in, operations);
    return operations;
  }
  const TimedLoads loads = timed_loads(in);
  const auto at = [&](double load) {
    in.expert_load = load;
    return operations_at_load(in, chunk);
  };
  ChunkOperations operations = at(loads.mean);
  if (loads.differ()) set_times_by_fullness(in, loads, at(loads.least), at(loads.most), operations);
  slow_passes(in, operations);
  hide_exchanges(in, operations);
  return operations;
}

double slowest_node_factor(const NodeType& node, const Plan& plan) {
  if (node.pass_spread == 0 || plan.num_nodes < 2) return 1;
  const Parallel& parallel = plan.parallel;
  const double nodes = plan.num_nodes, microbatches = microbatches_of_iteration(plan),
               fill = (parallel.pipeline - 1.0) / parallel.virtual_pipeline,
               of_pipeline = std::clamp(
                   static_cast<double>(parallel.ranks_of_replica()) / node.gpus, 1.0, nodes);
  const double steady = (microbatches - 1) * largest_of(nodes),
               edges = (1 + fill) * largest_of(nodes / of_pipeline) / std::sqrt(of_pipeline);
  return std::exp(node.pass_spread * (steady + edges) / (microbatches + fill));
}

const SoftwareProfile::Experts& experts_of(const StageCostInputs& in) {
  if (in.node == nullptr) return in.software->experts;
  return in.software->experts_on(in.node->device, in.plan->training.precision, *in.model);
}

LayerShape layer_shape(const Plan& plan, const SoftwareProfile& software) {
  return {.microbatch = plan.training.micro_batch,
          .tensor = plan.parallel.tensor,
          .context = plan.parallel.context,
          .attends_by_parts = plan.parallel.context_method == ContextMethod::ring,
          .merging = software.ring_merging,
          .sequence_parallel = plan.parallel.sequence_parallel,
          .attention = plan.training.attention,
          .precision = plan.training.precision,
          .fused_kernels = software.fused_kernels,
          .traffic = plan.training.compile
                         ? software.layer_traffic
                         : software.eager_layer_traffic.value_or(software.layer_traffic),
          .reads_for_scale = software.current_scaling && !plan.training.scales_blocks(),
          .casts_weights = plan.parallel.zero_stage == 3 && !keeps_operands(plan, software),
          .frozen = plan.training.lora.is_used(),
          .scales_fp8_blocks = plan.training.scales_blocks(),
          .row_cast_efficiency =
              plan.training.scales_rows() ? software.row_cast_efficiency.value_or(1) : 0,
          .expert = plan.parallel.expert,
          .expert_tensor = plan.parallel.expert_tensor};
}

Bytes stage_message_size(const Transformer& model, const Plan& plan,
                         const SoftwareProfile& software, Label message) {
  StageCostInputs inputs;
  inputs.model = &model;
  inputs.plan = &plan;
  inputs.software = &software;
  const ChunkOperations operations = chunk_operations(inputs, {});
  return (message == Label::activation_message ? operations.message : operations.gradient_message)
      .payload;
}

ChunkRole chunk_role(const Transformer& model, const Plan& plan, const ChunkPlace& place) {
  const ChunkMap map = plan.chunk_map();
  const int layers = plan.chunk_layers(place), before = plan.layers_before(place);
  ChunkRole role{layers, map.is_first(place), map.is_last(place),
                 model.moe ? model.expert_layers(before, layers) : 0,
                 model.seen_share(before, layers)};
  if (const int predicted = plan.mtp_layers_of(place); predicted > 0) {
    role.layers += predicted;
    if (model.predicts_with_experts()) role.expert_layers += predicted;
    role.seen_share =
        (role.seen_share * layers + model.seen_share(model.layers - 1, 1) * predicted) /
        role.layers;
  }
  const RecomputedLayers& recomputed = plan.training.recompute_layers;
  if (plan.training.recompute == Recompute::none || recomputed.are_all()) return role;
  int on_rank = 0;
  for (int chunk = 0; chunk < place.chunk; ++chunk)
    on_rank += plan.chunk_layers({place.stage, chunk});
  // Megatron-Core does not recompute layers of multi-token prediction with method block.
  const int predicted = role.layers - layers;
  role.not_recomputed = recomputed.left_out(on_rank, layers) + predicted;
  role.leaves_out_last = predicted > 0 || recomputed.leave_out_last(on_rank, layers);
  return role;
}

ChunkRole stage_role(const Transformer& model, const Plan& plan, StageId stage) {
  ChunkRole all;
  for (int chunk = 0; chunk < plan.parallel.virtual_pipeline; ++chunk) {
    const ChunkRole role = chunk_role(model, plan, {stage, chunk});
    all.layers += role.layers;
    all.expert_layers += role.expert_layers;
    all.not_recomputed += role.not_recomputed;
    all.leaves_out_last = role.leaves_out_last && (chunk == 0 || all.leaves_out_last);
    all.first |= role.first;
    all.last |= role.last;
  }
  return all;
}

double stage_matrix_parameters(const Transformer& model, const Plan& plan, StageId stage) {
  const ChunkRole role = stage_role(model, plan, stage);
  if (role.layers == 0) return 0;
  const double with_experts = role.expert_layers / static_cast<double>(role.layers);
  return role.layers * layer_matrix_parameters(model, plan.parallel.tensor, with_experts);
}

StageCost stage_cost(const StageCostInputs& in) {
  WT_EXPECT(in.model && in.plan && in.software && in.node && in.fabric);
  const Parallel& parallel = in.plan->parallel;
  StageCost cost;
  const PassBytes bytes = pass_bytes(in);
  cost.tensor_payload = encoded(in, Label::reduce_activation, bytes.activation).payload;
  ParameterCounts parameters;
  ChunkRole before;
  for (int chunk = 0; chunk < parallel.virtual_pipeline; ++chunk) {
    const ChunkPlace place{in.stage, chunk};
    const ChunkRole role = chunk_role(*in.model, *in.plan, place);
    const bool as_before = chunk > 0 && role == before;
    cost.chunks.push_back(as_before ? cost.chunks.back() : chunk_cost(in, role));
    before = role;
    ChunkCost& added = cost.chunks.back();
    if (!as_before) {
      added.reductions = chunk_reductions(end_inputs(in, added.parameters), chunk);
      for (Operation& reduction : added.reductions) reduction.time = collective_time(in, reduction);
    }
    cost.gradients += dense_gradients(*in.plan, added.parameters);
    parameters += added.parameters;
  }
  if (overlaps_passes(*in.plan)) {
    WT_EXPECT(cost.chunks.size() == 2);
    overlap(in, cost.chunks.front(), cost.chunks.back());
    overlap(in, cost.chunks.back(), cost.chunks.front());
  }
  cost.taken_by_collectives = taken_by_collectives(in);
  cost.embedding_share = element_size(in.plan->training.gradient_type) *
                         word_embedding_parameters(*in.model, parallel.tensor);
  cost.end = end_of_iteration(end_inputs(in, parameters));
  if (in.model->moe) cost.exchanged = exchanged_share(in);
  return cost;
}

}  // namespace windtunnel
