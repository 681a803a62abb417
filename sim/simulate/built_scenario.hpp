#pragma once

#include <optional>

#include "lower/program_builder.hpp"
#include "report/report.hpp"
#include "scenario/scenario.hpp"
#include "simulate/folding.hpp"

namespace windtunnel {

/// A scenario ready to be simulated: simulate() in two steps, for whoever wants to see the network in between.
struct BuiltScenario {
  Plan plan;  ///< with compressed stages chosen
  std::optional<Fold> fold;
  BuiltPrograms programs;  ///< of the fold's plan where there is one
};
BuiltScenario build(const Scenario& scenario);
/// With this plan in place of its own.
BuiltScenario build(const Scenario& scenario, const Plan& plan);

/// Figures of a simulated plan that a search keeps.
struct PlanFigures {
  Seconds iteration_time{};
  MemoryAccount memory;
  Breakdown breakdown;  ///< of the device that ends last
};
/// As simulate() gives them for the scenario with this plan in place of its own, bit by bit. The plan's places must be there; of the
/// scenario only what it runs on is read.
PlanFigures simulate_plan(const Scenario& scenario, const Plan& plan);

/// The report's time, breakdown, rates and memory, as simulate() would give them, and nothing else: no traffic or assumptions.
Report simulate_key_figures(const Scenario& scenario, const BuiltScenario& built);

}  // namespace windtunnel
