#include "memory/memory_correction.hpp"

#include <cmath>

#include "core/contracts.hpp"

namespace windtunnel {

const std::vector<std::string>& memory_feature_names() {
  static const std::vector<std::string> names{
      "ln gpus",        "ln layers",        "ln hidden",         "ln heads",
      "ln tensor",      "ln pipeline",      "ln data",           "ln (1 + stage layers)",
      "ln micro_batch", "ln microbatches",  "first stage",       "last stage",
      "state share",    "activation share", "ln allocated bytes"};
  return names;
}

std::vector<double> memory_features(const MemoryInputs& inputs, const StageMemory& stage) {
  const Plan& plan = *inputs.plan;
  const double states = (stage.weights + stage.gradients + stage.optimizer) / stage.allocated;
  return {std::log(plan.num_ranks()),
          std::log(inputs.model->layers),
          std::log(inputs.model->hidden),
          std::log(inputs.model->heads),
          std::log(plan.parallel.tensor),
          std::log(plan.parallel.pipeline),
          std::log(plan.parallel.replicas()),
          std::log(1.0 + plan.stage_layers[stage.stage.index()]),
          std::log(plan.training.micro_batch),
          std::log(plan.microbatches),
          plan.has_embedding(stage.stage) ? 1.0 : 0.0,
          plan.has_head(stage.stage) ? 1.0 : 0.0,
          states,
          stage.activations / stage.allocated,
          std::log(stage.allocated / 1_B)};
}

double correction_factor(const MemoryCorrection& correction, const std::vector<double>& features) {
  const std::size_t inputs = features.size();
  WT_EXPECT(correction.mean.size() == inputs && correction.scale.size() == inputs);
  WT_EXPECT(correction.output.size() == correction.hidden.size() + 1);
  if (correction.most == 0) return 1;
  double y = correction.output.back();
  for (std::size_t unit = 0; unit < correction.hidden.size(); ++unit) {
    const std::vector<double>& weights = correction.hidden[unit];
    WT_EXPECT(weights.size() == inputs + 1);
    double sum = weights.back();
    for (std::size_t i = 0; i < inputs; ++i)
      sum += weights[i] * (features[i] - correction.mean[i]) / correction.scale[i];
    y += correction.output[unit] * std::tanh(sum);
  }
  return std::exp(correction.most * std::tanh(y / correction.most));
}

}  // namespace windtunnel
