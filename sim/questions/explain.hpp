#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/explanation.hpp"
#include "scenario/scenario.hpp"
#include "simulate/simulate.hpp"
#include "simulate/tasks.hpp"

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

/// Simulates the scenario with its timeline, finds its critical path, and simulates its what-ifs: not those of which the critical
/// path says that they cannot matter, and where there is a budget those that may save most first.
Explained explain(const Scenario& scenario, const Library& library, const ExplainOptions& options);

/// The request for a simulation: `file` is a path or the name of a shipped scenario.
struct AskedRun {
  std::string file;
  Overrides overrides;
  std::uint64_t seed = 0;
  std::string engine;  ///< empty: as always
};

/// The command line that simulates the scenario with `changes`: `windtunnel run`, the file, and what was asked for. A placement that was
/// searched is part of it, so that the same is simulated without another search.
std::string run_command_line(const AskedRun& asked, const Scenario& scenario,
                             const Overrides& changes = {});
/// Gives the explanation the commands that repeat its simulations.
void add_commands(const AskedRun& asked, const Scenario& scenario, Explanation& explanation);

/// The questions that the scenario raises: each kind of link, GPU and node in use, the launch floor, a straggler made and taken away,
/// each stage, the microbatch, schedule and exchange habits, codecs of each traffic class. Only those that the scenario allows.
std::vector<WhatIf> what_ifs(const Scenario& scenario, const Library& library);

/// Results of all changes, in the order of the list, each simulated on its own, `at_once` at a time.
/// `on_done`: called with the number of those done. `is_over`: asked before each; where it says so, the what-if is over budget.
std::vector<WhatIfResult> simulate_what_ifs(const Scenario& scenario, const Library& library,
                                            const std::vector<WhatIf>& changes, std::size_t at_once,
                                            const std::function<void(std::size_t)>& on_done = {},
                                            const std::function<bool()>& is_over = {});

}  // namespace windtunnel
