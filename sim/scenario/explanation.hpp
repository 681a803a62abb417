#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "report/path_shares.hpp"
#include "report/terminal_text.hpp"
#include "scenario/what_if.hpp"

namespace windtunnel {

/// Why an iteration takes as long as it does, and what would change it.
struct Explanation {
  Report report;
  std::vector<PathShare> path;  ///< adds up to the iteration time
  std::vector<Slack> stages, links;
  std::vector<WhatIfResult> what_ifs;  ///< the largest gain first; those that failed last
};

/// Simulates the scenario with its timeline, finds its critical path, and simulates every what-if beside it. To be called once in a
/// process (simulate()). `at_once`: children at the same time; `on_done`: called with the number of changes done.
Explanation explain(const Scenario& scenario, const Library& library, std::size_t at_once,
                    const std::function<void(std::size_t)>& on_done = {});

/// What `windtunnel explain` prints:
///
///   16.31 s per iteration: what it waited for, from first to last
///      41.2 %     6.720 s  compute of stage 5
///      …
///   What if
///      -6.1 %     15.31 s  twice the NIC rate (a100-sxm-80gb)
std::string explanation_text(const Explanation& explanation, Colour colour);

/// {"schema": "windtunnel/explanation-v1", "iteration_time_s", "critical_path": [{"what", "line", "time_s", "share", "steps"}],
///  "stages": [{"what", "busy_s", "on_path_s", "slack_s"}], "links": [the same],
///  "what_ifs": [{"what", "set": {pointer: value}, "iteration_time_s", "change", "breakdown_s"} or {…, "failure"}], "report": {…}}
JsonValue explanation_value(const Explanation& explanation);

}  // namespace windtunnel
