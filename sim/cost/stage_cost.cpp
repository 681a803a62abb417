#include "cost/stage_cost.hpp"

#include <algorithm>

#include "core/contracts.hpp"
#include "cost/collective_cost.hpp"

namespace windtunnel {
namespace {

/// Kernel times of the pieces a stage is made of, on one rank.
struct Pieces {
  Seconds layer_forward{}, layer_backward{}, attention_core{}, backward_products{};
  Seconds head_forward{}, head_backward{}, embedding{};
  Seconds all_reduce{};  ///< one tensor collective of one activation, in the node; zero when it
                         ///< crosses nodes
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

LayerShape layer_shape(const Plan& plan) {
  return {.microbatch = plan.training.micro_batch,
          .tensor = plan.parallel.tensor,
          .sequence_parallel = plan.parallel.sequence_parallel,
          .attention = plan.training.attention,
          .precision = plan.training.precision};
}

Pieces pieces(const StageCostInputs& in) {
  const KernelContext context = kernel_context(in);
  const LayerShape shape = layer_shape(*in.plan);
  const Transformer& model = *in.model;
  const SoftwareProfile& software = *in.software;
  const double head_factor = in.node->device.gemm.head_factor;
  const double flash_forward = context.flash_forward_efficiency;
  Pieces p;
  const KernelWork backward = layer_backward(model, shape);
  p.layer_forward = kernel_time(layer_forward(model, shape), context, 1, flash_forward);
  p.backward_products = linear_time(backward, context);
  p.layer_backward = kernel_time(backward, context, 1, context.flash_backward_efficiency) +
                     memory_time(Bytes{software.gradient_accumulation_bytes *
                                       layer_matrix_parameters(model, shape.tensor)},
                                 in.node->device);
  p.attention_core = kernel_time(attention_core_forward(model, shape), context, 1, flash_forward);
  p.head_forward =
      kernel_time(head_forward(model, shape, software.cross_entropy_bytes), context, head_factor);
  p.head_backward =
      kernel_time(head_backward(model, shape, software.cross_entropy_bytes), context, head_factor);
  p.embedding = kernel_time(embedding_pass(model, shape), context);
  if (in.plan->parts == 1) {
    p.all_reduce =
        in_node_all_reduce(in.node->interconnect, in.tensor_gpus, activation_size(model, shape)) *
        (software.in_node_collective_slowdown * in.node->in_node_collective_slowdown);
  }
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

/// In the middle of a receive, scattered messages are gathered again inside the node: half an
/// all-reduce.
Seconds gather_time(const StageCostInputs& in, const Pieces& p) {
  const bool gathers =
      in.software->gather_scattered_messages && in.software->scatter_pipeline_messages;
  return gathers ? p.all_reduce / 2 : Seconds{0};
}

PassCost forward_pass(const StageCostInputs& in, const Pieces& p, int layers, bool first,
                      bool last) {
  const LaunchTimes launch = launch_times(in);
  PassCost pass;
  pass.compute = p.layer_forward * layers + p.head_forward * last + p.embedding * first;
  pass.tensor_comm =
      p.all_reduce * (2 * layers + first) + (first ? Seconds{0} : gather_time(in, p));
  pass.launch = launch.forward * (layers + in.software->launch.head_share * last +
                                  in.software->launch.embedding_share * first);
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

/// What hides one backward all-reduce: a quarter of the layer's backward weight products, about one
/// weight gradient.
Seconds hiding_work(const SoftwareProfile& software, const Pieces& p) {
  constexpr double products_per_collective = 4;
  return software.overlap_backward_tensor_collectives
             ? p.backward_products / products_per_collective
             : Seconds{0};
}

PassCost backward_pass(const StageCostInputs& in, const Pieces& p, int layers, bool first,
                       bool last) {
  const LaunchTimes launch = launch_times(in);
  const bool full = in.plan->training.recompute == Recompute::full;
  const Seconds exposed = std::max(Seconds{0}, p.all_reduce - hiding_work(*in.software, p));
  PassCost pass;
  pass.compute = (p.layer_backward + recomputation(*in.plan, p)) * layers + p.head_backward * last +
                 p.embedding * first;
  pass.tensor_comm = exposed * (2 * layers) + p.all_reduce * (2 * layers * full + last + first) +
                     (last ? Seconds{0} : gather_time(in, p));
  pass.launch = (launch.backward + launch.forward * full) * layers +
                launch.forward * (in.software->launch.head_share * last +
                                  in.software->launch.embedding_share * first);
  return pass;
}

double stage_parameters(const StageCostInputs& in, int layers, bool first, bool last) {
  const int t = in.plan->parallel.tensor;
  return layers * layer_parameters(*in.model, t) +
         (first ? embedding_parameters(*in.model, t) : 0) +
         (last ? head_parameters(*in.model, t, in.plan->parallel.pipeline) : 0);
}

Bytes gradient_element(GradientType type) { return Bytes{type == GradientType::fp32 ? 4.0 : 2.0}; }

void add_collective_counts(const StageCostInputs& in, const Pieces& p, int layers, bool first,
                           bool last, StageCost& cost) {
  const bool full = in.plan->training.recompute == Recompute::full;
  if (in.plan->parallel.tensor == 1) return;
  cost.forward_all_reduces = 2 * layers + first;
  const int exposed_backward = 2 * layers * full + last + first;
  cost.backward_all_reduces = 2 * layers + exposed_backward;
  if (in.plan->parts == 1) return;
  cost.forward_cross.exposed = cost.forward_all_reduces;
  cost.backward_cross.exposed = exposed_backward;
  cost.backward_cross.overlappable = 2 * layers;
  cost.backward_cross.hidden_behind = hiding_work(*in.software, p) * (2 * layers);
}

/// Uncontended time of the collectives that the engine will play as flows.
Seconds cross_node_estimate(const StageCostInputs& in, const StageCost& cost,
                            const CrossNodeCollectives& cross) {
  if (in.plan->parts == 1) return {};
  const Bytes volume = ring_all_reduce_volume(cost.tensor_payload, in.plan->parallel.tensor);
  const Seconds one = volume / (in.node->effective_nic_rate() * static_cast<double>(in.node->nics));
  return one * static_cast<double>(cross.exposed) +
         std::max(Seconds{0}, one * static_cast<double>(cross.overlappable) - cross.hidden_behind);
}

/// The CPU launches on while collectives run, so the floor holds for kernels and collectives
/// together; those played as flows are taken out again.
void set_duration(PassCost& pass, Seconds flows, double sharpness) {
  const Seconds kernels = pass.compute + pass.tensor_comm;
  pass.duration =
      std::max(kernels, with_launch_floor(kernels + flows, pass.launch, sharpness) - flows);
}

}  // namespace

StageCost stage_cost(const StageCostInputs& in) {
  WT_EXPECT(in.model && in.plan && in.software && in.node);
  const bool first = in.plan->is_first(in.stage), last = in.plan->is_last(in.stage);
  const int layers = in.plan->stage_layers[in.stage.index()];
  const Pieces p = pieces(in);
  const double q = in.software->launch.sharpness;
  StageCost cost;
  cost.forward = forward_pass(in, p, layers, first, last);
  cost.backward = backward_pass(in, p, layers, first, last);
  const LayerShape shape = layer_shape(*in.plan);
  cost.tensor_payload = activation_size(*in.model, shape);
  add_collective_counts(in, p, layers, first, last, cost);
  set_duration(cost.forward, cross_node_estimate(in, cost, cost.forward_cross), q);
  set_duration(cost.backward, cross_node_estimate(in, cost, cost.backward_cross), q);
  const double parameters = stage_parameters(in, layers, first, last);
  cost.optimizer = memory_time(Bytes{in.software->optimizer_bytes * parameters}, in.node->device);
  cost.message = cost.tensor_payload /
                 (in.software->scatter_pipeline_messages ? in.plan->parallel.tensor : 1.0);
  const Bytes element = gradient_element(in.plan->training.gradient_type);
  cost.gradients = element * parameters;
  cost.embedding_gradients =
      element * word_embedding_parameters(*in.model, in.plan->parallel.tensor);
  return cost;
}

}  // namespace windtunnel
