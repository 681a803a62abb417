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

/// Counts in the order in which a stage runs its passes: the same as in its program.
InFlight count_in_flight(const std::vector<Step>& order);

/// Counted in the schedule's order, for a plan whose programs have not been made.
InFlight estimate_in_flight(const Plan& plan, StageId stage);
/// The same for all stages, in stage order.
InFlightOfStages estimate_in_flight(const Plan& plan);

}  // namespace windtunnel
