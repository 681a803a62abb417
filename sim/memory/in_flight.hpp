#pragma once

#include <vector>

#include "core/id.hpp"
#include "plan/plan.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// How many (microbatch, model chunk) pairs a stage holds at once: from the start of a pair's
/// forward pass to the end of its backward pass.
struct InFlight {
  int all = 0;  ///< the most ever
  int with_gradients =
      0;  ///< the most after the first backward pass, when the stage's gradients exist as well
};

/// Counts in a program's compute stream. A pair is held from its first forward op to the end of its
/// last backward op, or of its weight gradient where the backward pass is split.
InFlight count_in_flight(const StageProgram& program);

/// The same for the programs of all stages, in stage order; MemoryInputs takes the two lists.
struct InFlightOfStages {
  std::vector<int> all, with_gradients;
};
InFlightOfStages in_flight_microbatches(const std::vector<StageProgram>& programs);

/// Closed form, for a plan whose programs have not been made:
///   n_all  = min(n, c),  n_grad = min(max(n-1, 1), c),  n = m v pairs
///   c = p - i (1F1B; Narayanan et al. 2021, section 2.2.1), p (zero-bubble H1: until the weight gradient; Qi et al.
///       2024), n (GPipe, and interleaved 1F1B with one group of microbatches),
///       2 (p-i-1) + (v-1) p + 1 (interleaved 1F1B otherwise: Megatron-LM's warm-up and the microbatch after it)
InFlight estimate_in_flight(const Plan& plan, StageId stage);
/// The same for all stages, in stage order.
InFlightOfStages estimate_in_flight(const Plan& plan);

}  // namespace windtunnel
