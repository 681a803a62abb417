#include "cost/model_operations.hpp"

#include "cost/kernel_cost.hpp"

namespace windtunnel {
namespace {

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

/// The weight gradients among backward products: every second one.
Seconds weight_gradient_time(const KernelWork& backward, const KernelContext& context,
                             double factor = 1) {
  Seconds time{};
  for (std::size_t i = 1; i < backward.linear.size(); i += 2)
    time += gemm_time(backward.linear[i], context, factor);
  return time;
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

class ModelWriter {
 public:
  ModelWriter(const StageCostInputs& in, const ChunkRole& chunk)
      : in_(in),
        chunk_(chunk),
        context_(kernel_context(in)),
        shape_(layer_shape(*in.plan, *in.software)),
        launch_(launch_times(in)) {}

  ChunkOperations write() {
    for (PassOperations& pass : result_.passes) pass.layers = chunk_.layers;
    add_layers();
    if (chunk_.first) add_embedding();
    if (chunk_.last) add_head();
    return std::move(result_);
  }

 private:
  PassOperations& forward() { return result_.at(Direction::forward); }
  PassOperations& backward() { return result_.at(Direction::backward); }
  PassOperations& input_gradient() { return result_.at(Direction::input_gradient); }
  PassOperations& weight_gradient() { return result_.at(Direction::weight_gradient); }

  /// One kernel operation of a layer, backward: whole, and in the halves of a split pass.
  void add_backward(Label label, const KernelWork& work, Seconds accumulation) {
    Operation whole = kernel(
        label, kernel_time(work, context_, 1, context_.flash_backward_efficiency) + accumulation);
    whole.products = linear_time(work, context_);
    const Operation weights =
        kernel(Label::weight_gradients, weight_gradient_time(work, context_) + accumulation);
    Operation inputs = whole;
    inputs.time -= weights.time;
    backward().layer.push_back(whole);
    input_gradient().layer.push_back(inputs);
    weight_gradient().layer.push_back(weights);
  }

  /// Traffic of adding one half's weight gradients to those of the microbatches before.
  Seconds accumulation(const KernelWork& forward) const {
    double parameters = 0;
    for (const Gemm& product : forward.linear) parameters += product.n * product.k;
    return memory_time(Bytes{in_.software->gradient_accumulation_bytes * parameters},
                       in_.node->device);
  }

  void add_layers() {
    const LayerWork ahead = layer_forward(*in_.model, shape_),
                    back = layer_backward(*in_.model, shape_);
    const double flash = context_.flash_forward_efficiency;
    forward().layer = {
        kernel(Label::attention, kernel_time(ahead.attention, context_, 1, flash)),
        kernel(Label::feed_forward, kernel_time(ahead.feed_forward, context_, 1, flash))};
    add_backward(Label::feed_forward, back.feed_forward, accumulation(ahead.feed_forward));
    add_backward(Label::attention, back.attention, accumulation(ahead.attention));
    constexpr double half = 0.5;
    forward().layer.front().launch = launch_.forward;
    backward().layer.front().launch = launch_.backward;
    input_gradient().layer.front().launch = launch_.backward * half;
    weight_gradient().layer.front().launch = launch_.backward * half;
  }

  void add_embedding() {
    Operation embedding =
        kernel(Label::embedding, kernel_time(embedding_pass(*in_.model, shape_), context_));
    embedding.launch = launch_.forward * in_.software->launch.embedding_share;
    forward().before.push_back(embedding);
    backward().after.push_back(embedding);
    input_gradient().after.push_back(embedding);
  }

  void add_head() {
    const double factor = in_.node->device.gemm.head_factor;
    const double traffic = in_.software->cross_entropy_bytes;
    const KernelWork back = head_backward(*in_.model, shape_, traffic);
    const Operation weights =
        kernel(Label::weight_gradients, weight_gradient_time(back, context_, factor));
    Operation ahead = kernel(Label::head, kernel_time(head_forward(*in_.model, shape_, traffic),
                                                      context_, factor)),
              whole = kernel(Label::head, kernel_time(back, context_, factor));
    ahead.launch = whole.launch = launch_.forward * in_.software->launch.head_share;
    Operation inputs = whole;
    inputs.time -= weights.time;
    forward().after.push_back(ahead);
    backward().before.push_back(whole);
    input_gradient().before.push_back(inputs);
    weight_gradient().before.push_back(weights);
  }

  const StageCostInputs& in_;
  const ChunkRole chunk_;
  const KernelContext context_;
  const LayerShape shape_;
  const LaunchTimes launch_;
  ChunkOperations result_;
};

}  // namespace

ChunkOperations model_operations(const StageCostInputs& in, const ChunkRole& chunk) {
  return ModelWriter(in, chunk).write();
}

Operation attention_core(const StageCostInputs& in) {
  const KernelContext context = kernel_context(in);
  return kernel(Label::attention_core,
                kernel_time(attention_core_forward(*in.model, layer_shape(*in.plan, *in.software)),
                            context, 1, context.flash_forward_efficiency));
}

}  // namespace windtunnel
