#pragma once

#include <optional>
#include <vector>

#include "engine/program_simulator.hpp"
#include "lower/program_builder.hpp"
#include "timeline/breakdown.hpp"
#include "timeline/steady_state.hpp"

namespace windtunnel {

/// Times and breakdowns of programs simulated on the native engine.
struct NativeRun {
  EngineResult result;
  BreakdownListener breakdowns;  ///< by device that is simulated
};
NativeRun simulate_natively(const BuiltPrograms& built);

/// A long iteration that is simulated with fewer microbatches, and the steady state that repeats in between: exact, not sampled.
struct Fold {
  Plan plan;            ///< with the microbatches that are simulated
  BuiltPrograms built;  ///< of that plan; taken by the caller that simulates or reports it
  NativeRun run;        ///< of that plan
  SteadyState steady;
  Repeats repeats;  ///< of the periods that are left out

  /// Adds the periods that are left out to the breakdown of a simulated device.
  void unfold(Breakdown& breakdown, DeviceId device) const;
  Seconds left_out() const { return steady.duration * static_cast<double>(repeats.left_out); }
};

/// The fold of a plan, or nothing where its steady state is not proven (timeline/steady_state.hpp): few microbatches, messages of different
/// pipelines that meet, encoders that overlap with the passes, tokens that are not spread evenly over experts, tensor groups and reductions of each
/// microbatch across nodes, GPipe (all forwards first) and schedules of the user's own, and pipelines that take too long to settle. Simulates
/// the pipeline once or twice, at a fraction of the whole's cost.
std::optional<Fold> find_fold(const BuildInputs& inputs);

}  // namespace windtunnel
