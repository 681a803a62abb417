#include "cost/end_of_iteration.hpp"

#include <algorithm>

#include "cost/kernel_cost.hpp"
#include "plan/gradient_reduction.hpp"

namespace windtunnel {
namespace {

Operation gradient_reduction_of(const EndInputs& in) {
  const Parallel& parallel = in.plan->parallel;
  return collective(
      parallel.zero_stage > 0 ? Label::scatter_gradients : Label::reduce_gradients,
      element_size(in.plan->training.gradient_type) * (in.parameters.all - in.parameters.experts),
      parallel.overlap_gradient_reduce ? Overlap::trailing : Overlap::none);
}

bool reduces_at_end(const Plan& plan) {
  return gradient_reduction(plan) == GradientReduction::per_iteration;
}

/// Experts have copies of their own, and reduce their gradients among them, behind the others.
bool has_copies_of_experts(const EndInputs& in) {
  return in.parameters.experts > 0 && expert_copies(in.plan->parallel) > 1;
}

Operation expert_reduction_of(const EndInputs& in) {
  return collective(in.plan->parallel.zero_stage > 0 ? Label::scatter_expert_gradients
                                                     : Label::reduce_expert_gradients,
                    element_size(in.plan->training.gradient_type) * in.parameters.experts);
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

/// Of one rank.
double linear_weights(const EndInputs& in) {
  return in.plan->stage_layers[in.stage.index()] *
         layer_matrix_parameters(*in.model, in.plan->parallel.tensor);
}

Bytes weight_casts(const EndInputs& in) {
  const Precision precision = in.plan->training.precision;
  if (!is_quantized(precision) || in.software->keeps_operands(precision) ||
      in.plan->parallel.zero_stage == 3)
    return {};
  return (element_size(precision) + operand_size(precision) * 2.0) *
         (linear_weights(in) + in.parameters.experts);
}

Bytes gathered_parameters(const EndInputs& in) {
  const Bytes element = element_size(in.plan->training.precision),
              saved = element - linear_weight_size(*in.plan, *in.software);
  const double gathered = in.parameters.all - in.parameters.experts;
  if (saved == Bytes{0}) return element * gathered;
  return element * gathered - saved * linear_weights(in);
}

/// ZeRO 3 gathers parameters in the passes.
bool gathers_parameters(const Parallel& parallel) {
  return parallel.gradient_replicas() > 1 && (parallel.zero_stage == 1 || parallel.zero_stage == 2);
}

}  // namespace

std::vector<Operation> end_of_iteration(const EndInputs& in) {
  std::vector<Operation> end;
  if (reduces_at_end(*in.plan)) end.push_back(gradient_reduction_of(in));
  if (has_copies_of_experts(in) && reduces_at_end(*in.plan)) end.push_back(expert_reduction_of(in));
  if (synchronises_embedding(in)) end.push_back(embedding_sync(in));
  const Bytes stepped{in.software->optimizer_bytes * in.parameters.optimizer};
  end.push_back(kernel(Label::optimizer_step, memory_time(stepped + weight_casts(in), *in.device)));
  if (gathers_parameters(in.plan->parallel))
    end.push_back(collective(Label::gather_parameters, gathered_parameters(in)));
  if (gathers_parameters(in.plan->parallel) && has_copies_of_experts(in))
    end.push_back(collective(Label::gather_expert_parameters,
                             linear_weight_size(*in.plan, *in.software) * in.parameters.experts));
  end.push_back(kernel(Label::iteration_overhead, in.software->iteration_overhead));
  return end;
}

Bytes linear_weight_size(const Plan& plan, const SoftwareProfile& software) {
  const Precision precision = plan.training.precision;
  return software.keeps_operands(precision) ? operand_size(precision) : element_size(precision);
}

const Operation* find(const std::vector<Operation>& operations, Label label) {
  const auto found = std::find_if(operations.begin(), operations.end(),
                                  [label](const Operation& o) { return o.label == label; });
  return found == operations.end() ? nullptr : &*found;
}

}  // namespace windtunnel
