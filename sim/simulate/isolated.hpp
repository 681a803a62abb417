#pragma once

#include <string>
#include <variant>

#include "simulate/forked.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {

/// The figures of a report that a search or a validation compares.
struct KeyFigures {
  Seconds iteration_time{};
  Bytes memory_max{};  ///< what nvidia-smi would show on the fullest GPU
  bool fits = true;
};
KeyFigures key_figures(const Report& report);

/// Result of a simulation in a child process, exact to the last bit.
struct IsolatedResult {
  KeyFigures figures;
  std::string report_json;  ///< as `run --json` prints it
};

using IsolatedOutcome = std::variant<IsolatedResult, ChildFailure>;

/// simulate() in a forked child: as often as wanted (one SimGrid engine fits in a process), each
/// from clock 0, and a crash comes back as a value.
IsolatedOutcome simulate_isolated(const Scenario& scenario, const SimulateOptions& options = {});

}  // namespace windtunnel
