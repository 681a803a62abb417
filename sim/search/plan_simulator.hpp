#pragma once

#include <cstddef>
#include <vector>

#include "search/plan_enumerator.hpp"
#include "simulate/built_scenario.hpp"

namespace windtunnel {

/// Simulates plans of one scenario, several at once (run_tasks): an exception with the plan's name when one failed.
std::vector<PlanFigures> simulate_plans(const Scenario& base, const SearchSpace& space,
                                        const std::vector<const PlanChoice*>& choices,
                                        std::size_t at_once);

}  // namespace windtunnel
