#include "plan/state_bytes.hpp"

#include <algorithm>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

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

/// What the scenario says of the copy that is stepped. A step that reads other types than the profile's reads gradients as they are, and
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
  constexpr double bits = 4.0 / 8, block = 64, scales_in_block = 256;
  return training.lora.frozen_type == FrozenType::nf4
             ? bits + 1 / block + single_bytes / (block * scales_in_block)
             : frozen_weight_size(training);
}

StateBytes state_bytes(const Training& training, const SoftwareProfile& software) {
  StateBytes states = is_half(training.precision) ? half_precision_states(training, software)
                                                  : single_precision_states();
  // A stack with fewer bytes than those and an fp32 copy does not say which of them it keeps.
  const double beside = states.optimizer - adam_bytes;
  states.master = beside >= single_bytes ? beside : 0;
  const double unnamed = beside - states.master;
  states = with_main_parameters(states, training);
  states.optimizer = states.master + unnamed + moment_bytes(training);
  return states;
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
