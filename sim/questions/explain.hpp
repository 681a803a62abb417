#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "questions/what_if.hpp"
#include "report/explanation.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {

/// An explanation and what it was read from.
struct Explained {
  Explanation explanation;
  Simulation simulation;  ///< with its timeline; its report has moved into the explanation
};

struct ExplainOptions {
  std::size_t at_once = 1;  ///< simulations at the same time
  /// No simulation of a what-if begins later than this after the start. None: all are simulated. At 0 none is.
  std::optional<Seconds> budget = {};
  /// Called with the number of what-ifs simulated, and of those to be simulated.
  std::function<void(std::size_t done, std::size_t all)> on_done = {};
};

/// Simulates the scenario with its timeline, finds its critical path, and simulates what-ifs beside it: not those of which the critical
/// path says that they cannot matter, and where there is a budget those that may save most first.
Explained explain(const Scenario& scenario, const Library& library, const ExplainOptions& options);

}  // namespace windtunnel
