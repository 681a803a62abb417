#pragma once

#include <cstddef>
#include <vector>

#include "search/plan_enumerator.hpp"
#include "simulate/isolated.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {

/// Figures of a simulated plan that a search keeps.
struct SimulatedPlan {
  KeyFigures figures;
  Breakdown breakdown;  ///< of the device that ends last
};

/// Simulates plans of one scenario, several at once (run_tasks). EnvironmentError when a child could not be started, an exception with the plan's name when one failed.
std::vector<SimulatedPlan> simulate_plans(const Scenario& base, const SearchSpace& space,
                                          const std::vector<const PlanChoice*>& choices,
                                          std::size_t at_once, EngineKind engine = engine_of_many);

}  // namespace windtunnel
