#pragma once

#include <optional>

#include "lower/program_builder.hpp"

namespace windtunnel {

/// The plan's compression with `"stages": "auto"` made concrete: the fewest stages whose compressed gradients give the least
/// iteration time on an otherwise idle network (heap engine). No stage is chosen where the codec costs more than it saves.
///
/// Tried are no stage, every stage, and those that end too late uncompressed; from the best of them on, stages are added and dropped
/// one by one until that gains nothing. A test compares the choice with every set of stages. Validity: where messages and
/// reductions share links, the iteration may take a little longer than with another choice; list stages to compare.
Compression with_stages_chosen(const BuildInputs& inputs);

/// The plan of `inputs` with its stages chosen. A copy only where that was left to the program: refers to the plan.
class PlanWithStages {
 public:
  explicit PlanWithStages(const BuildInputs& inputs);
  const Plan& plan() const { return chosen_ ? *chosen_ : *given_; }

 private:
  const Plan* given_;
  std::optional<Plan> chosen_;
};

}  // namespace windtunnel
