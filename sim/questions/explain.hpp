#pragma once

#include <cstddef>
#include <functional>

#include "report/explanation.hpp"
#include "simulate/simulate.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {

/// An explanation and what it was read from.
struct Explained {
  Explanation explanation;
  Simulation simulation;  ///< with its timeline; its report has moved into the explanation
};

/// Simulates the scenario with its timeline, finds its critical path, and simulates every what-if beside it. `at_once`: simulations at the same time; `on_done`: called with the number of changes done.
Explained explain(const Scenario& scenario, const Library& library, std::size_t at_once,
                  const std::function<void(std::size_t)>& on_done = {},
                  EngineKind engine = engine_of_many);

}  // namespace windtunnel
