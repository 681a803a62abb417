#include "memory/stage_states.hpp"

#include <algorithm>

namespace windtunnel {
namespace {

constexpr double half_bytes = 2;    ///< of an fp16 or bf16 value
constexpr double single_bytes = 4;  ///< of an fp32 value
constexpr double adam_moments = 2;
constexpr double sgd_moments = 1;  ///< momentum; plain SGD without it would need none [assumed]

bool is_half(Precision precision) {
  return precision == Precision::fp16 || base_precision(precision) == Precision::bf16;
}

double moment_bytes(Optimizer optimizer) {
  return single_bytes * (optimizer == Optimizer::adam ? adam_moments : sgd_moments);
}

/// Training in fp32 or tf32 [assumed]: weights 4, gradients 4, Adam 8; the weights are their own
/// master.
StateBytes single_precision_states() {
  return {.weights = single_bytes,
          .gradients = single_bytes,
          .stale_gradients = 0,
          .optimizer = single_bytes * adam_moments,
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

/// The fp32 gradients that the first step makes. A stack that keeps stale gradients (stack A) keeps
/// a copy of the live ones and these; another makes them for the step alone.
double main_gradient_bytes(const StateBytes& states) {
  return states.stale_gradients > 0 ? std::max(states.stale_gradients - states.gradients, 0.0)
                                    : states.step_temporary;
}

}  // namespace

StateBytes state_bytes(const Training& training, const SoftwareProfile& software) {
  StateBytes states = is_half(training.precision) ? half_precision_states(training, software)
                                                  : single_precision_states();
  // Profiles state Adam's bytes.
  states.optimizer += moment_bytes(training.optimizer) - moment_bytes(Optimizer::adam);
  return states;
}

StageStates stage_states(const Training& training, const SoftwareProfile& software,
                         const ParameterCounts& parameters) {
  const StateBytes bytes = state_bytes(training, software);
  const Bytes weights{parameters.weights}, gradients{parameters.gradients},
      optimizer{parameters.optimizer};  // one byte a parameter
  const double freed =
      bytes.gradients_freed_each_step ? std::min(bytes.gradients, half_bytes) : 0.0;
  return {.weights = bytes.weights * weights,
          .live_gradients = bytes.gradients * gradients,
          .stale_gradients = bytes.stale_gradients * gradients,
          .optimizer = bytes.optimizer * optimizer,
          .step_temporary = bytes.step_temporary * optimizer,
          .freed_gradients = freed * gradients,
          .moments = moment_bytes(training.optimizer) * optimizer,
          .main_gradients = main_gradient_bytes(bytes) * optimizer};
}

}  // namespace windtunnel
