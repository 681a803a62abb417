#pragma once

#include <compare>
#include <optional>

#include "scenario/scenario.hpp"
#include "studies/baseline_estimators.hpp"

namespace windtunnel {

/// What the formulas need of a scenario, from the tables that its simulation would use: times of passes, nominal or measured rates
/// of links. Where replicas or kinds of GPUs differ, a stage is as slow as its slowest device.
BaselineInputs baseline_inputs(const Scenario& scenario,
                               GradientCount gradients = GradientCount::account,
                               LinkRate links = LinkRate::node);

/// The time that `baseline` gives the scenario's plan.
Seconds baseline_estimate(Baseline baseline, const Scenario& scenario,
                          const BaselineOptions& options = {});

/// How much a baseline likes a plan: the smaller comes first.
struct BaselinePreference {
  int model_ways = 0;    ///< Megatron only: tensor times pipeline ways, as few as fit
  int fewer_tensor = 0;  ///< Megatron only: of these as many tensor ways as possible, so minus them
  Seconds estimate{};
  auto operator<=>(const BaselinePreference&) const = default;
};

/// The place of the scenario's plan in the order of `baseline`; nothing where the method leaves the plan out.
///  - amp: every plan, whether it fits in memory or not.
///  - varuna: no tensor ways; what fits with the activations of a single microbatch in flight, as its profile counts.
///  - pipette: what its loops try (1, 2, 4 or 8 tensor ways and samples at a time, stages of whole nodes), and of these what fits by the
///    memory account (its own estimator is a network trained on runs that were never published), tensor groups inside a node.
///  - megatron: what fits, tensor groups inside a node (takeaway 1); the smallest model-parallel size, and within it tensor before
///    pipeline (takeaways 1 and 2); then equation 1, which chooses the microbatch (takeaway 3).
std::optional<BaselinePreference> baseline_preference(Baseline baseline, const Scenario& scenario,
                                                      const BaselineOptions& options = {});

}  // namespace windtunnel
