#include "cost/end_of_iteration.hpp"

#include <algorithm>

#include "cost/codec_cost.hpp"
#include "cost/kernel_cost.hpp"
#include "cost/muon.hpp"
#include "cost/stage_cost.hpp"
#include "plan/plan.hpp"

namespace windtunnel {
namespace {

/// Adds what reduces all gradients but those of experts. Where states are shared out in groups, each group scatters, and adds up its shards
/// with those of the other groups behind that: start_grad_sync in megatron/core/distributed/param_and_grad_buffer.py, Megatron-LM at
/// d98e8a6, with num_distributed_optimizer_instances.
void add_gradient_reduction(const EndInputs& in, std::vector<Operation>& to) {
  const Parallel& parallel = in.plan->parallel;
  const Overlap overlap = parallel.overlap_gradient_reduce ? Overlap::trailing : Overlap::none;
  const Bytes gradients = dense_gradients(*in.plan, in.parameters);
  to.push_back(
      collective(in.plan->scatters_gradients() ? Label::scatter_gradients : Label::reduce_gradients,
                 gradients, overlap));
  const int replicas = in.plan->reducing_replicas();
  if (replicas < parallel.replicas())
    to.push_back(
        collective(Label::reduce_shards, gradients / static_cast<double>(replicas), overlap));
}

/// Memory that the codec keeps for the gradients of chunks [first, last), or for those of their experts, which have process groups of their
/// own.
KeptByCodec kept_of_gradients(const EndInputs& in, int first, int last, bool of_experts) {
  const Plan& plan = *in.plan;
  if ((!of_experts && plan.parallel.replicas() == 1) ||
      !compresses_gradients(plan.compression, static_cast<int>(in.stage.index())))
    return {};
  std::vector<CodecMatrix> matrices;
  for (int chunk = first; chunk < last; ++chunk)
    for (const CodecMatrix& matrix :
         of_experts ? expert_gradient_matrices(*in.model, plan, in.stage, chunk)
                    : gradient_matrices(*in.model, plan, in.stage, chunk))
      matrices.push_back(matrix);
  return kept_of_gradients(*plan.compression.data_gradients, matrices,
                           element_size(plan.training.gradient_type),
                           of_experts ? expert_copies(plan.parallel) : plan.reducing_replicas());
}

/// Experts have copies of their own, and reduce their gradients among them, behind the others.
bool has_copies_of_experts(const EndInputs& in) {
  return in.parameters.trained_experts > 0 && expert_copies(in.plan->parallel) > 1;
}

Operation expert_reduction_of(const EndInputs& in) {
  return collective(in.plan->scatters_gradients() ? Label::scatter_expert_gradients
                                                  : Label::reduce_expert_gradients,
                    element_size(in.plan->training.gradient_type) * in.parameters.trained_experts);
}

/// Memory that the codec keeps for the gather of parameters, layer by layer, or for that of experts' parameters.
KeptByCodec kept_of_gather(const EndInputs& in, bool of_experts) {
  const Plan& plan = *in.plan;
  if (!plan.compression.zero_gather) return {};
  const Bytes element = element_size(plan.training.precision);
  const double parameters = of_experts
                                ? expert_parameters(*in.model) / expert_group_size(plan.parallel)
                                : layer_matrix_parameters(*in.model, plan.parallel.tensor);
  return kept_of_ring(
      *plan.compression.zero_gather, element * parameters, element,
      of_experts ? expert_copies(plan.parallel) : sharding_group_size(plan.parallel));
}

void add_reductions(const EndInputs& in, std::vector<Operation>& end) {
  if (gradient_reduction(*in.plan) != GradientReduction::per_iteration) return;
  add_gradient_reduction(in, end);
  if (!reduces_by_chunk(*in.plan))
    end.front().held.codec = kept_of_gradients(in, 0, in.plan->parallel.virtual_pipeline, false);
  if (!has_copies_of_experts(in)) return;
  end.push_back(expert_reduction_of(in));
  end.back().held.codec = kept_of_gradients(in, 0, in.plan->parallel.virtual_pipeline, true);
}

Operation embedding_sync(const EndInputs& in) {
  const GradientType type =
      in.software->embedding_gradient_type.value_or(in.plan->training.gradient_type);
  return collective(
      Label::synchronise_embedding,
      element_size(type) * word_embedding_parameters(*in.model, in.plan->parallel.tensor));
}

bool synchronises_embedding(const EndInputs& in) {
  const Plan& plan = *in.plan;
  return windtunnel::synchronises_embedding(*in.model, plan) &&
         (plan.has_embedding(in.stage) || plan.has_head(in.stage));
}

double linear_weights(const EndInputs& in) {
  return stage_matrix_parameters(*in.model, *in.plan, in.stage);
}

Bytes weight_casts(const EndInputs& in) {
  const Precision precision = in.plan->training.precision;
  if (!is_quantized(precision) || keeps_operands(*in.plan, *in.software) ||
      in.plan->parallel.zero_stage == 3)
    return {};
  return (element_size(precision) +
          operand_size(precision) * operand_copies(*in.plan, *in.software, in.node->device)) *
         (linear_weights(in) + in.parameters.experts);
}

/// Read or written, of all gradients; sharded ones belong to the optimizer's own traffic.
Bytes gradient_passes(const EndInputs& in) {
  const Plan& plan = *in.plan;
  if (plan.parallel.zero_stage > 1) return {};
  const double reduced = (in.software->scales_gradients ? 2 : 0) +  // read, written
                         (in.software->copies_gradients ? 4 : 0);   // twice that
  const double passes =
      (in.software->zeroes_gradients ? 1 : 0) + (plan.parallel.replicas() > 1 ? reduced : 0);
  return element_size(plan.training.gradient_type) * (passes * in.parameters.trained());
}

/// Parameters that the rank steps which steps most: whole tensors have one owner, whose largest are the words.
double most_stepped(const EndInputs& in) {
  const Plan& plan = *in.plan;
  const bool owns_words = plan.broadcasts_parameters() && !plan.training.lora.is_used() &&
                          (plan.has_embedding(in.stage) || plan.has_head(in.stage));
  return std::max(in.parameters.optimizer,
                  owns_words ? word_embedding_parameters(*in.model, plan.parallel.tensor) : 0);
}

/// Muon's products. One moment less is read and written of each matrix.
Seconds muon_time(const EndInputs& in) {
  if (in.plan->training.optimizer != Optimizer::muon) return {};
  KernelContext context;
  context.device = &in.node->device;
  // A GPU without bf16 products has those of the passes.
  context.precision = context.device->peak.contains(Precision::bf16)
                          ? Precision::bf16
                          : base_precision(in.plan->training.precision);
  context.compute_efficiency = in.software->compute_efficiency * in.node->compute_efficiency;
  return orthogonalisation_time(muon_matrices(*in.model, *in.plan, in.stage), context);
}

/// Bytes that the step of `stepped` parameters moves on the GPU.
Bytes step_traffic(const EndInputs& in, double stepped) {
  const Training& training = in.plan->training;
  const double saved = 2 * (moment_bytes(training) - matrix_moment_bytes(training));
  return Bytes{step_bytes(training, *in.software) * stepped - saved * in.parameters.matrices};
}

/// Time of the step of the parameters that the host steps. Gradients are copied to it as they are reduced, and weights back as the passes
/// use them; it steps at the rate of its memory, which reads and writes main parameters and moments and reads the gradients:
///   copies overlapped with the step (pinned buffers, parameter by parameter)  max(to, step, back),   else their sum
/// HybridDeviceOptimizer.step in megatron/core/optimizer/cpu_offloading/hybrid_optimizer.py, Megatron-LM at d98e8a6, with
/// --overlap-cpu-optimizer-d2h-h2d or without it. Limits: the host's launches, and the first and last copies that nothing hides, are not counted.
Seconds host_step_time(const EndInputs& in, double stepped) {
  if (stepped == 0) return {};
  const Training& training = in.plan->training;
  const Host& host = *in.node->host;
  const StateBytes states = state_bytes(training, *in.software);
  const Bytes gradient = element_size(training.gradient_type),
              state{training.main_parameters == MainParameters::none
                        ? states.weights + states.optimizer
                        : states.optimizer};
  const Seconds to = gradient * stepped / host.effective_link(),
                step = (gradient + state * 2.0) * stepped / host.effective_memory(),
                back = element_size(training.precision) * stepped / host.effective_link();
  return training.overlap_optimizer_offload ? std::max({to, step, back}) : to + step + back;
}

/// The GPU and the host step their parameters at the same time.
Seconds step_time(const EndInputs& in) {
  if (in.node == nullptr) return {};
  const double offloaded = in.plan->training.optimizer_offload, stepped = most_stepped(in);
  const Bytes before = gradient_passes(in) + weight_casts(in);
  const Device& device = in.node->device;
  return std::max(
      memory_time(step_traffic(in, stepped * (1 - offloaded)) + before, device) + muon_time(in),
      memory_time(before, device) + host_step_time(in, stepped * offloaded));
}

Bytes gathered_parameters(const EndInputs& in) {
  const Bytes element = element_size(in.plan->training.precision),
              saved = element - linear_weight_size(*in.plan, *in.software);
  const double gathered = in.parameters.trained() - in.parameters.trained_experts;
  if (saved == Bytes{0} || in.plan->training.lora.is_used()) return element * gathered;
  return element * gathered - saved * linear_weights(in);
}

bool gathers_parameters(const Parallel& parallel) {
  return parallel.gradient_replicas() > 1 && parallel.zero_stage > 0 &&
         !parallel.gathers_in_passes();
}

}  // namespace

std::vector<Operation> end_of_iteration(const EndInputs& in) {
  std::vector<Operation> end;
  add_reductions(in, end);
  if (synchronises_embedding(in)) end.push_back(embedding_sync(in));
  end.push_back(kernel(Label::optimizer_step, step_time(in)));
  if (gathers_parameters(in.plan->parallel)) {
    end.push_back(collective(
        in.plan->broadcasts_parameters() ? Label::broadcast_parameters : Label::gather_parameters,
        gathered_parameters(in)));
    end.back().held.codec = kept_of_gather(in, false);
    if (has_copies_of_experts(in)) {
      end.push_back(
          collective(Label::gather_expert_parameters,
                     linear_weight_size(*in.plan, *in.software) * in.parameters.trained_experts));
      end.back().held.codec = kept_of_gather(in, true);
    }
  }
  end.push_back(kernel(Label::iteration_overhead, in.software->iteration_overhead));
  return end;
}

std::vector<Operation> chunk_reductions(const EndInputs& in, int chunk) {
  std::vector<Operation> reductions;
  if (!reduces_by_chunk(*in.plan)) return reductions;
  add_gradient_reduction(in, reductions);
  reductions.front().held.codec = kept_of_gradients(in, chunk, chunk + 1, false);
  if (gradient_reduction(*in.plan) != GradientReduction::per_microbatch ||
      !has_copies_of_experts(in))
    return reductions;
  reductions.push_back(expert_reduction_of(in));
  reductions.back().held.codec = kept_of_gradients(in, chunk, chunk + 1, true);
  return reductions;
}

Bytes dense_gradients(const Plan& plan, const ParameterCounts& parameters) {
  return element_size(plan.training.gradient_type) *
         (parameters.trained() - parameters.trained_experts);
}

bool keeps_operands(const Plan& plan, const SoftwareProfile& software) {
  return software.fp8_parameters && plan.training.precision != Precision::nvfp4 &&
         !plan.training.scales_rows();
}

double operand_copies(const Plan& plan, const SoftwareProfile& software, const Device& device) {
  const Training& training = plan.training;
  const bool has_one_scale =
      training.precision == Precision::fp8 && training.fp8_recipe == Fp8Recipe::tensor;
  return has_one_scale && device.takes_any_layout() && !software.row_cast_efficiency ? 1 : 2;
}

Bytes linear_weight_size(const Plan& plan, const SoftwareProfile& software) {
  const Precision precision = plan.training.precision;
  return keeps_operands(plan, software) ? operand_size(precision) : element_size(precision);
}

const Operation* find_parameter_gather(const std::vector<Operation>& end) {
  const Operation* const gather = find(end, Label::gather_parameters);
  return gather != nullptr ? gather : find(end, Label::broadcast_parameters);
}

const Operation* find(const std::vector<Operation>& operations, Label label) {
  const auto found = std::find_if(operations.begin(), operations.end(),
                                  [label](const Operation& o) { return o.label == label; });
  return found == operations.end() ? nullptr : &*found;
}

}  // namespace windtunnel
