#include "cost/model_operations.hpp"

#include <algorithm>

#include "core/contracts.hpp"
#include "cost/end_of_iteration.hpp"
#include "cost/expert_times.hpp"
#include "cost/kernel_cost.hpp"
#include "cost/model_held.hpp"
#include "plan/plan.hpp"

namespace windtunnel {
namespace {

/// The kernel of fused attention in a layer of this precision: fp8 needs the scales of quantised linear layers.
FlashKernel flash_kernel(const StageCostInputs& in, Precision precision) {
  const FlashKernel kernel = in.plan->training.attention_kernel;
  return kernel == FlashKernel::fp8 && !is_quantized(precision) ? FlashKernel::cudnn : kernel;
}

KernelContext kernel_context(const StageCostInputs& in, Precision precision) {
  const SoftwareProfile& software = *in.software;
  KernelContext context;
  context.device = &in.node->device;
  context.precision = precision;
  context.flash_kernel = flash_kernel(in, precision);
  context.attention_precision =
      context.flash_kernel == FlashKernel::fp8 ? Precision::fp8 : base_precision(precision);
  context.compute_efficiency = software.compute_efficiency * in.node->compute_efficiency;
  if (const Precision of_run = in.plan->training.precision;
      of_run == Precision::fp16 || of_run == Precision::bf16)
    context.compute_efficiency *= in.node->device.gemm.long_run_factor;
  context.head_size = in.model->key_width();
  if (const auto* rates = software.memory_rates_on(in.node->device))
    context.memory_rate = rates->forward;
  if (const auto own = software.flash_rates(in.node->device, context.flash_kernel)) {
    context.flash_forward_efficiency = own->forward;
    context.flash_backward_efficiency = own->backward;
  }
  return context;
}

/// The context of what is no linear layer: the output head, whose traffic counts attained bytes.
KernelContext base_context(KernelContext context) {
  context.precision = base_precision(context.precision);
  context.memory_rate.reset();
  return context;
}

/// The same on the way back.
KernelContext backward_context(const StageCostInputs& in, KernelContext context) {
  if (const auto* rates = in.software->memory_rates_on(in.node->device))
    context.memory_rate = rates->backward;
  return context;
}

LayerShape shape_of(const StageCostInputs& in, Precision precision) {
  LayerShape shape = layer_shape(*in.plan, *in.software);
  shape.precision = precision;
  if (in.node != nullptr)
    shape.operand_copies = operand_copies(*in.plan, *in.software, in.node->device);
  shape.fp8_attention = flash_kernel(in, precision) == FlashKernel::fp8;
  shape.seen_share = in.seen_share;
  if (!in.model->moe) return shape;
  shape.expert_load = expert_load_of(in);
  const SoftwareProfile::Experts& stack = experts_of(in);
  shape.expert_kernels = stack.kernels;
  shape.stacked_experts = stack.stacked_weights;
  shape.expert_activation = stack.activation;
  shape.expert_room = stack.room;
  shape.sorts_arrived_tokens = stack.dispatch == ExpertDispatch::all_to_all;
  shape.pads_experts = stack.pads_tokens;
  shape.adds_expert_biases = stack.adds_biases;
  shape.weighs_in_fp32 = stack.dispatch == ExpertDispatch::one_copy_per_node;
  return shape;
}

FlopCounts all(Flops flops) { return {flops, flops, flops, flops}; }

/// FLOPs of the attention core: two products forward, four backward. Flash attention skips what the causal mask hides, and backward
/// computes the scores a second time: five products (Dao 2023, arXiv:2307.08691, 3.1).
FlopCounts core_flops(const Transformer& model, const LayerShape& shape, double products,
                      double with_scores) {
  constexpr double half = 0.5, in_forward = 2;
  const Flops one = attention_core_flops(model, shape) / in_forward;
  const bool is_flash = shape.attention == Attention::flash;
  return {one * products, one * (products * half), one * products,
          one * (is_flash ? with_scores * half : products)};
}
FlopCounts core_forward_flops(const Transformer& model, const LayerShape& shape) {
  return core_flops(model, shape, 2, 2);
}
FlopCounts core_backward_flops(const Transformer& model, const LayerShape& shape) {
  return core_flops(model, shape, 4, 5);
}

/// The weight gradients among backward products: every second one.
Seconds weight_gradient_time(const KernelWork& backward, const KernelContext& context,
                             double factor = 1) {
  Seconds time{};
  for (std::size_t i = 1; i < backward.linear.size(); i += 2)
    time += gemm_time(backward.linear[i], context, factor);
  return time;
}

/// CPU time to launch all kernels of `work`.
Seconds launch_time(const StageCostInputs& in, const KernelWork& work) {
  auto kernels = static_cast<double>(work.attention.size()) + work.memory_kernels +
                 (work.flash > Flops{0} ? 1 : 0);
  for (const Gemm& product : work.linear) kernels += product.one_by_one ? product.batch : 1;
  return in.software->launch.kernel * (kernels * in.node->launch_slowdown);
}

/// Extra launch time of work that is launched for one expert after another, on top of launch_time(). None if each expert takes a fixed
/// number of tokens (`capacity`): the host need not wait for the device to learn how many came, and launches ahead
/// (moe_pad_expert_input_to_capacity: token_dispatcher.py in megatron/core/transformer/moe, drop_and_pad, Megatron-Core 0.14).
Seconds loop_time(const StageCostInputs& in, const KernelWork& work) {
  const SoftwareProfile::Experts& stack = experts_of(in);
  if (stack.loop_launch == Seconds{0} || stack.kernels != ExpertKernels::each_expert) return {};
  if (in.model->moe->capacity > 0) return {};
  double products = 0;
  for (const Gemm& product : work.linear) products += product.batch;
  const auto counted = static_cast<double>(work.linear.size());
  const Seconds each = std::max(Seconds{0}, stack.loop_launch - in.software->launch.kernel);
  return (stack.loop_launch * (products - counted + work.looped_calls) +
          each * (work.looped_kernels + counted)) *
         in.node->launch_slowdown;
}

class ModelWriter {
 public:
  ModelWriter(const StageCostInputs& in, const ChunkRole& chunk, Precision precision)
      : in_(in),
        chunk_(chunk),
        held_(*in.model, *in.plan, in.software->copies, in.software->adapters),
        shape_(shape_of(in, precision)) {
    if (!is_timed()) return;
    context_ = kernel_context(in, precision);
  }

  ChunkOperations write() {
    for (PassOperations& pass : result_.passes) pass.layers = chunk_.layers;
    add_layers();
    if (chunk_.first) add_embedding();
    if (chunk_.last) add_head();
    add_message();
    return std::move(result_);
  }

 private:
  PassOperations& forward() { return result_.at(Direction::forward); }
  PassOperations& backward() { return result_.at(Direction::backward); }
  PassOperations& input_gradient() { return result_.at(Direction::input_gradient); }
  PassOperations& weight_gradient() { return result_.at(Direction::weight_gradient); }

  bool is_timed() const { return in_.node != nullptr; }
  bool is_frozen() const { return in_.plan->training.lora.is_used(); }

  /// A kernel operation, backward: whole, and in the halves of a split pass.
  struct Backward {
    Operation whole, inputs, weights;
  };
  static Backward backward_of(Label label, const Held& held) {
    Backward result{kernel(label, {}), {}, kernel(Label::weight_gradients, {})};
    result.whole.held = held;
    result.inputs = result.whole;
    return result;
  }

  /// Sets the times of a layer's backward pass. Gradients only pass through frozen weights.
  void time_layer(Backward& operation, const KernelWork& given, Seconds accumulation) const {
    const KernelWork work = is_frozen() ? without_weight_gradients(given) : given;
    auto& [whole, inputs, weights] = operation;
    whole.time =
        kernel_time(work, backward_context(in_, context_), 1, context_.flash_backward_efficiency);
    whole.products = inputs.products = linear_time(work, context_);
    const Seconds launch = launch_time(in_, work);
    if (is_frozen()) {
      inputs.time = whole.time;
      whole.launch = inputs.launch = launch;
      return;
    }
    whole.time += accumulation;
    weights.time = weight_gradient_time(work, context_) + accumulation;
    inputs.time = whole.time - weights.time;
    add_launch(operation, launch);
  }

  static void add_launch(Backward& operation, Seconds launch) {
    constexpr double half = 0.5;
    operation.whole.launch += launch;
    operation.inputs.launch += launch * half;
    operation.weights.launch += launch * half;
  }

  /// Adds a half's adapters, whose matrices are frozen, and the casts of those that are kept in fewer bits. Adapters compute in 16 bits
  /// where the matrices compute in eight or four (they are no modules of Transformer Engine: ParallelLinearAdapter in
  /// megatron/bridge/peft/utils.py, Megatron-Bridge at 067f987).
  void add_adapters(LayerHalf half, Operation& ahead, Backward& back) const {
    const Training& training = in_.plan->training;
    KernelContext context = context_;
    const AdapterKernels kernels = in_.software->adapters;
    context.precision =
        kernels == AdapterKernels::fp32 ? Precision::fp32 : base_precision(context.precision);
    const KernelWork forward = adapters_forward(*in_.model, training.lora, half, shape_, kernels),
                     backward = adapters_backward(*in_.model, training.lora, half, shape_, kernels);
    const Seconds cast = cast_of_frozen(half),
                  whole = kernel_time(backward, backward_context(in_, context)),
                  sum = accumulation(forward), weights = weight_gradient_time(backward, context);
    ahead.time += kernel_time(forward, context) + cast;
    ahead.launch += launch_time(in_, forward);
    back.weights.time += weights + sum;
    back.inputs.time += whole - weights + cast;
    back.whole.time += whole + sum + cast;
    add_launch(back, launch_time(in_, backward));
    const FlopCounts products = all(product_flops(forward.linear));
    ahead.flops += products;
    back.weights.flops = products;
    back.inputs.flops += products;
    back.whole.flops = back.inputs.flops + back.weights.flops;
  }

  /// Each matrix is read as it is kept and written for its product, in either direction.
  Seconds cast_of_frozen(LayerHalf half) const {
    const Training& training = in_.plan->training;
    if (training.lora.frozen_type == FrozenType::as_passes) return {};
    const Divisible<double> matrices = half == LayerHalf::attention
                                           ? attention_matrices(*in_.model)
                                           : feed_forward_matrices(*in_.model);
    const Bytes each = Bytes{frozen_matrix_size(training)} + element_size(training.precision);
    return memory_time(each * matrices.on_rank(shape_.tensor), in_.node->device);
  }

  /// Backward each product with weights is done twice, once in either half; the attention core twice with the inputs.
  static void count_flops(Operation& ahead, Backward& back, Flops products,
                          const FlopCounts& core = {}, const FlopCounts& core_back = {}) {
    ahead.flops = all(products) + core;
    back.weights.flops = all(products);
    back.inputs.flops = all(products) + core_back;
    back.whole.flops = back.inputs.flops + back.weights.flops;
  }

  /// Counts no FLOPs of gradients of weights.
  static void pass_gradients_on(Backward& back) {
    back.weights.flops = {};
    back.whole.flops = back.inputs.flops;
  }

  /// Traffic of adding one half's weight gradients to those of the microbatches before.
  Seconds accumulation(const KernelWork& forward) const {
    double parameters = 0;
    for (const Gemm& product : forward.linear) parameters += product.n * product.k * product.batch;
    const double bytes = in_.software->accumulation_bytes(in_.plan->training.precision);
    return memory_time(Bytes{bytes * parameters}, in_.node->device);
  }

  void add_layers() {
    Operation attention = kernel(Label::attention, {}),
              feed_forward = kernel(Label::feed_forward, {});
    attention.held = held_.attention();
    feed_forward.held = held_.feed_forward();
    Backward feed_forward_back = backward_of(Label::feed_forward, held_.feed_forward_backward()),
             attention_back = backward_of(Label::attention, held_.attention_backward());
    if (is_timed()) {
      const LayerWork ahead = layer_forward(*in_.model, shape_);
      time_forward(ahead, attention, feed_forward);
      time_backward(ahead, feed_forward_back, attention_back);
      count_flops(attention, attention_back, product_flops(ahead.attention.linear),
                  core_forward_flops(*in_.model, shape_), core_backward_flops(*in_.model, shape_));
      count_flops(feed_forward, feed_forward_back, product_flops(ahead.feed_forward.linear));
      if (is_frozen()) {
        add_adapters(LayerHalf::attention, attention, attention_back);
        add_adapters(LayerHalf::feed_forward, feed_forward, feed_forward_back);
      }
    }
    forward().layer = {attention};
    const double share =
        chunk_.layers == 0 ? 0 : chunk_.expert_layers / static_cast<double>(chunk_.layers);
    if (share < 1) {
      if (share > 0) scale_both(feed_forward, feed_forward_back, 1 - share);
      add_ahead(feed_forward);
      add_back(feed_forward_back);
    }
    if (share > 0) add_experts(share);
    add_back(attention_back);
  }

  void add_ahead(const Operation& operation) { forward().layer.push_back(operation); }
  void add_back(const Backward& operation) {
    backward().layer.push_back(operation.whole);
    if (!is_timed()) return;
    input_gradient().layer.push_back(operation.inputs);
    weight_gradient().layer.push_back(operation.weights);
  }

  /// Scales an operation that a share of the layers has to the mean over all layers. The memory that one layer's backward pass holds stays
  /// whole.
  static void scale_both(Operation& ahead, Backward& back, double share) {
    for (Operation* operation : {&ahead, &back.whole, &back.inputs, &back.weights})
      scale(*operation, share);
    for (Divisible<double>* counted :
         {&ahead.held.parameters, &ahead.held.frozen, &ahead.held.matrices})
      *counted = *counted * share;
    for (Divisible<Bytes>& tensor : ahead.held.tensors) tensor = tensor * share;
  }

  /// A kernel of a layer with experts, forward and backward.
  struct ForwardAndBackward {
    Operation ahead;
    Backward back;
  };
  ForwardAndBackward expert_part(Label label, const Held& held, const Held& held_back,
                                 const KernelWork& ahead, const KernelWork& back,
                                 double share) const {
    ForwardAndBackward part{kernel(label, {}), backward_of(label, held_back)};
    part.ahead.held = held;
    if (is_timed()) {
      part.ahead.time = kernel_time(ahead, context_);
      part.ahead.launch = launch_time(in_, ahead);
      time_layer(part.back, back, ahead.linear.empty() ? Seconds{0} : accumulation(ahead));
      if (label == Label::experts)
        add_loops(part, ahead, is_frozen() ? without_weight_gradients(back) : back);
      // The router's product is small: both of its gradients stay with the inputs', in time also where it is frozen.
      const FlopCounts router = all(product_flops(ahead.attention));
      // Experts are timed on the fullest rank; the work of all ranks is the mean rank's.
      const double of_mean =
          label == Label::experts ? kept_share(*in_.model->moe) / shape_.expert_load : 1;
      count_flops(part.ahead, part.back, product_flops(ahead.linear) * of_mean, router,
                  router * (is_frozen() ? 1 : 2));
      if (is_frozen()) pass_gradients_on(part.back);
    }
    scale_both(part.ahead, part.back, share);
    return part;
  }

  void add_loops(ForwardAndBackward& part, const KernelWork& ahead, const KernelWork& back) const {
    part.ahead.launch += loop_time(in_, ahead);
    add_launch(part.back, loop_time(in_, back));
  }

  /// Experts, what every token takes besides them, and what is done around them.
  void add_experts(double share) {
    ExpertWork ahead, back;
    if (is_timed()) {
      ahead = experts_forward(*in_.model, shape_);
      back = experts_backward(*in_.model, shape_);
    }
    const ForwardAndBackward routing = expert_part(Label::routing, held_.routing(), {},
                                                   ahead.routing, back.routing, share),
                             shared = expert_part(Label::shared_experts, held_.shared_experts(), {},
                                                  ahead.shared, back.shared, share),
                             experts = expert_part(Label::experts, held_.experts(),
                                                   held_.experts_backward(), ahead.experts,
                                                   back.experts, share),
                             merging = expert_part(Label::merging, {}, {}, ahead.merging,
                                                   back.merging, share);
    const bool has_shared = in_.model->moe->shared_ffn_hidden > 0;
    add_ahead(routing.ahead);
    if (has_shared) add_ahead(shared.ahead);
    add_ahead(experts.ahead);
    add_ahead(merging.ahead);
    // Their backward operations come before those of attention, the last first.
    add_back(merging.back);
    if (has_shared) add_back(shared.back);
    add_back(experts.back);
    add_back(routing.back);
  }

  void time_forward(const LayerWork& ahead, Operation& attention, Operation& feed_forward) const {
    const double flash = context_.flash_forward_efficiency;
    attention.time = kernel_time(ahead.attention, context_, 1, flash);
    feed_forward.time = kernel_time(ahead.feed_forward, context_, 1, flash);
    attention.launch = launch_time(in_, ahead.attention);
    feed_forward.launch = launch_time(in_, ahead.feed_forward);
    add_edge_products(attention, ahead.attention);
    add_edge_products(feed_forward, ahead.feed_forward);
  }

  /// The last product of a half gives what is scattered, the others read what is gathered.
  void add_edge_products(Operation& half, const KernelWork& work) const {
    half.scattered_products = gemm_time(work.linear.back(), context_);
    half.gathered_products = linear_time(work, context_) - half.scattered_products;
  }

  void time_backward(const LayerWork& ahead, Backward& feed_forward, Backward& attention) const {
    const LayerWork back = layer_backward(*in_.model, shape_);
    time_layer(feed_forward, back.feed_forward, accumulation(ahead.feed_forward));
    time_layer(attention, back.attention, accumulation(ahead.attention));
    // The gradient of a half's output is gathered for the input's gradient of its last product. Those of the first ones are added up
    // before they are scattered, which no product gives.
    for (auto& [half, work] :
         {std::pair{&feed_forward, &back.feed_forward}, std::pair{&attention, &back.attention}})
      half->whole.gathered_products = half->inputs.gathered_products =
          gemm_time(*(work->linear.end() - 2), context_);
  }

  void add_embedding() {
    Operation embedding = kernel(Label::embedding, {});
    if (is_timed()) {
      const KernelWork work = embedding_pass(*in_.model, shape_);
      embedding.time = kernel_time(work, context_);
      embedding.launch = launch_time(in_, work);
    }
    embedding.held = held_.embedding();
    forward().before.push_back(embedding);
    embedding.held = held_.embedding_backward();
    // Frozen words have no gradient.
    if (is_frozen()) embedding.time = embedding.launch = Seconds{0};
    backward().after.push_back(embedding);
    if (!is_timed()) return;
    input_gradient().after.push_back(embedding);
  }

  void add_head() {
    Operation ahead = kernel(Label::head, {});
    ahead.held = held_.head();
    Backward back = backward_of(Label::head, held_.head_backward());
    if (is_timed()) {
      time_head(ahead, back);
      count_flops(ahead, back, head_flops(*in_.model, shape_));
      if (is_frozen()) pass_gradients_on(back);
    }
    forward().after.push_back(ahead);
    backward().before.push_back(back.whole);
    if (!is_timed()) return;
    input_gradient().before.push_back(back.inputs);
    weight_gradient().before.push_back(back.weights);
  }

  void time_head(Operation& ahead, Backward& back) const {
    const double factor = in_.node->device.gemm.head_factor;
    // Traffic per logit of the rank's own head.
    const double traffic = in_.software->cross_entropy_bytes *
                           (in_.plan->training.loss_parallel ? 1 : in_.plan->parallel.tensor);
    const KernelContext context = base_context(context_);
    const KernelWork ahead_work = head_forward(*in_.model, shape_, traffic),
                     whole_back_work = head_backward(*in_.model, shape_, traffic),
                     back_work =
                         is_frozen() ? without_weight_gradients(whole_back_work) : whole_back_work;
    const KernelWork joining = prediction_forward(*in_.model, shape_),
                     joining_back = prediction_backward(*in_.model, shape_);
    const double heads = 1 + in_.model->mtp_layers;
    ahead.time = kernel_time(ahead_work, context, factor) * heads + kernel_time(joining, context_);
    back.whole.time = kernel_time(back_work, context, factor) * heads +
                      kernel_time(joining_back, backward_context(in_, context_));
    back.weights.time = weight_gradient_time(back_work, context, factor) * heads +
                        weight_gradient_time(joining_back, context_);
    back.inputs.time = back.whole.time - back.weights.time;
    ahead.launch = launch_time(in_, ahead_work) * heads + launch_time(in_, joining);
    back.whole.launch = back.inputs.launch =
        launch_time(in_, back_work) * heads + launch_time(in_, joining_back);
  }

  void add_message() {
    result_.message = {.label = Label::activation_message,
                       .payload = activation_size(*in_.model, shape_),
                       .held = held_.message()};
    result_.gradient_message = {
        .label = Label::gradient_message, .payload = result_.message.payload, .held = {}};
  }

  const StageCostInputs& in_;
  const ChunkRole chunk_;
  const ModelHeld held_;
  const LayerShape shape_;
  KernelContext context_;
  ChunkOperations result_;
};

/// The share of a chunk's layers that stay bf16 under nvfp4: those nearest the model's ends, as many as the chunk has.
double bf16_share(const StageCostInputs& in, const ChunkRole& chunk) {
  if (in.plan->training.precision != Precision::nvfp4 || chunk.layers == 0) return 0;
  const int kept = (chunk.first ? in.software->nvfp4_first_bf16_layers : 0) +
                   (chunk.last ? in.software->nvfp4_last_bf16_layers : 0);
  return std::min(kept, chunk.layers) / static_cast<double>(chunk.layers);
}

/// The mean layer of a chunk in which `share` of the layers are `other`'s. Both write the same operations.
void blend(ChunkOperations& operations, const ChunkOperations& other, double share) {
  for (std::size_t pass = 0; pass < operations.passes.size(); ++pass) {
    std::vector<Operation>& layer = operations.passes[pass].layer;
    const std::vector<Operation>& others = other.passes[pass].layer;
    WT_EXPECT(layer.size() == others.size());
    for (std::size_t i = 0; i < layer.size(); ++i) {
      layer[i].time = layer[i].time * (1 - share) + others[i].time * share;
      layer[i].products = layer[i].products * (1 - share) + others[i].products * share;
    }
  }
}

}  // namespace

ChunkOperations model_operations(const StageCostInputs& in, const ChunkRole& chunk) {
  const Precision precision = in.plan->training.precision;
  ChunkOperations operations = ModelWriter(in, chunk, precision).write();
  if (const double share = bf16_share(in, chunk); share > 0 && in.node != nullptr)
    blend(operations, ModelWriter(in, chunk, base_precision(precision)).write(), share);
  return operations;
}

Operation flash_core_backward(const StageCostInputs& in) {
  Operation core = kernel(Label::context_attention, {});
  if (in.node == nullptr) return core;
  const Precision precision = in.plan->training.precision;
  const KernelContext context = backward_context(in, kernel_context(in, precision));
  const LayerShape shape = shape_of(in, precision);
  core.time = kernel_time(flash_core_backward(*in.model, shape), context, 1,
                          context.flash_backward_efficiency);
  core.flops = core_backward_flops(*in.model, shape);
  return core;
}

namespace {

/// A part of a layer in kernels of its own. The work is counted where it is timed.
template <class Work>
Operation part_again(const StageCostInputs& in, Label label, const Work& count) {
  Operation part = kernel(label, {});
  if (in.node == nullptr) return part;
  const Precision precision = in.plan->training.precision;
  const KernelContext context = kernel_context(in, precision);
  const KernelWork work = count(*in.model, shape_of(in, precision));
  part.time = kernel_time(work, context, 1, context.flash_forward_efficiency);
  part.launch = launch_time(in, work);
  part.flops = all(product_flops(work.linear));
  return part;
}

}  // namespace

Operation attention_core(const StageCostInputs& in) {
  Operation core = part_again(in, Label::attention_core, attention_core_forward);
  if (in.node != nullptr)
    core.flops = core_forward_flops(*in.model, shape_of(in, in.plan->training.precision));
  return core;
}

std::vector<RecomputedPart> recomputed_parts(const StageCostInputs& in) {
  using Module = RecomputedModule;
  const RecomputedModules& modules = in.plan->training.recompute_modules;
  std::vector<RecomputedPart> parts;
  if (modules.has(Module::norms) && in.model->mla)
    parts.push_back(
        {Label::attention, part_again(in, Label::recomputed_attention, norm_forward), Kept::norm});
  if (modules.has(Module::up_projection))
    parts.push_back({Label::attention,
                     part_again(in, Label::recomputed_attention, up_projection_forward),
                     Kept::up_projected});
  if (modules.has(Module::norms) && in.model->moe)
    parts.push_back(
        {Label::routing, part_again(in, Label::recomputed_routing, norm_forward), Kept::norm});
  if (modules.has(Module::expert_activation))
    parts.push_back({Label::experts,
                     part_again(in, Label::recomputed_experts, expert_activation_forward),
                     Kept::activated});
  return parts;
}

Operation experts_again(const StageCostInputs& in) {
  return part_again(in, Label::recomputed_experts,
                    [](const Transformer& model, const LayerShape& shape) {
                      KernelWork work = experts_forward(model, shape).experts;
                      // Shared experts come behind the routed ones, whose last product then runs again on the way there.
                      if (model.moe->shared_ffn_hidden == 0) work.linear.pop_back();
                      return work;
                    });
}

Operation half_again(const StageCostInputs& in, LayerHalf half) {
  const bool is_attention = half == LayerHalf::attention;
  return part_again(in, is_attention ? Label::recomputed_attention : Label::recomputed_feed_forward,
                    [&](const Transformer& model, const LayerShape& shape) {
                      const LayerWork again =
                          layer_again(model, shape, in.plan->training.recompute);
                      return is_attention ? again.attention : again.feed_forward;
                    });
}

}  // namespace windtunnel
