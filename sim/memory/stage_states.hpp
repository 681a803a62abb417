#pragma once

#include "operations/operation.hpp"
#include "plan/plan.hpp"
#include "platform/software_profile.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Bytes each parameter costs in this training on this stack, before any sharding: the profile's
/// own bytes, adapted to fp32 training, another gradient type or another optimizer (docs/memory.md,
/// "States", has the rules).
StateBytes state_bytes(const Training& training, const SoftwareProfile& software);

/// Training state of one rank of a stage, by role, after sharding over the data-parallel ways.
struct StageStates {
  Bytes weights{}, live_gradients{}, stale_gradients{}, optimizer{};
  Bytes step_temporary{};   ///< only while the optimizer steps
  Bytes freed_gradients{};  ///< part of the live gradients that the first backward has yet to make
  Bytes moments{};          ///< part of the optimizer's state that its first step makes
  Bytes main_gradients{};   ///< fp32 gradients that the first step makes

  Bytes total() const { return weights + live_gradients + stale_gradients + optimizer; }
};

/// States of a rank that keeps them of so many parameters.
StageStates stage_states(const Training& training, const SoftwareProfile& software,
                         const ParameterCounts& parameters);

}  // namespace windtunnel
