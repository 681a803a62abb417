#pragma once

#include "engine/collapse.hpp"
#include "engine/engine.hpp"
#include "operations/operation.hpp"
#include "report/report.hpp"
#include "scenario/scenario.hpp"
#include "timeline/timeline.hpp"

namespace windtunnel {

/// Treatment of a long iteration: its steady state is simulated once and repeated (simulate/folding.hpp), or every microbatch is simulated.
enum class Folding { when_exact, never };

/// Options of a simulation, and what is kept in addition to its report.
struct SimulateOptions {
  MakeEngine make_engine = make_native_engine;
  Folding folding = Folding::when_exact;               ///< never folded when the timeline is kept
  Replicas replicas = Replicas::collapsed_when_exact;  ///< each when the timeline is kept
  bool keep_timeline = false;
  Detail detail = Detail::pass;
  /// The library whose evidence gives the prediction interval; null: the report has none.
  const Library* evidence = nullptr;
};

/// One simulated iteration.
struct Simulation {
  Report report;
  ProgramSet programs;  ///< what was simulated, for the trace
  Network network;      ///< the links it shared; refers to the scenario's platform
  Timeline timeline;    ///< empty unless asked for
};

/// Simulates one training iteration of the scenario, whose placement must be decided (prepare_scenario()): as often as wanted, on any number of threads, but for
/// the simgrid engine, of which a process has one.
Simulation simulate(const Scenario& scenario, const SimulateOptions& options = {});

}  // namespace windtunnel
