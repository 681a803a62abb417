#pragma once

#include <vector>

#include "plan/plan.hpp"

namespace windtunnel {

/// Number of (microbatch, model chunk) pairs that a stage holds at once, from the start of a pair's forward pass to the end of its backward
/// pass, or of its weight gradient where the backward pass is split. 1F1B holds min(m, p - i) on stage i of p.
struct InFlight {
  double all = 0;  ///< the most ever
  double with_gradients =
      0;  ///< the most after the first backward pass, when the stage's gradients exist as well
};

/// Pairs in flight on a stage that runs its passes in this order. `weights`: weight of a pair, by chunk; empty: each counts 1.
InFlight count_in_flight(const std::vector<Step>& order, const std::vector<double>& weights = {});
/// The same for the stages of a plan, in stage order, in microbatches of the whole stage: each pair counts as its chunk's share of the
/// stage's layers. MemoryInputs takes the two lists.
struct InFlightOfStages {
  std::vector<double> all, with_gradients;
};
InFlightOfStages count_in_flight(const Plan& plan);

}  // namespace windtunnel
