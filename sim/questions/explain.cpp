#include "questions/explain.hpp"

#include <algorithm>

#include "questions/what_if.hpp"
#include "simulate/simulate.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {
namespace {

/// What of a changed scenario's run is told.
struct Figures {
  Seconds iteration_time{};
  Breakdown breakdown;
  bool fits = true;
};

/// What could be simulated before what could not, the shortest iteration first.
bool gains_more(const WhatIfResult& a, const WhatIfResult& b) {
  if (a.failure.empty() != b.failure.empty()) return a.failure.empty();
  return a.iteration_time < b.iteration_time;
}

}  // namespace

std::vector<WhatIfResult> simulate_what_ifs(const Scenario& scenario, const Library& library,
                                            const std::vector<WhatIf>& changes, std::size_t at_once,
                                            const std::function<void(std::size_t)>& on_done,
                                            EngineKind engine) {
  Tasks<Figures> tasks;
  tasks.count = changes.size();
  tasks.at_once = at_once;
  tasks.on_done = on_done;
  tasks.work = [&](std::size_t i) {
    const Scenario changed = read_scenario(scenario.resolved, library.root, library,
                                           {changes[i].overrides, scenario.seed});
    const Report report = simulate(changed, {.engine = engine}).report;
    return Figures{report.iteration_time, report.breakdown, report.memory.fits};
  };
  std::vector<WhatIfResult> results;
  for (const TaskOutcome<Figures>& outcome : run_tasks(engine, tasks)) {
    WhatIfResult& result = results.emplace_back();
    result.change = changes[results.size() - 1];
    if (const auto* failure = std::get_if<ChildFailure>(&outcome)) {
      result.failure = failure->text;
      continue;
    }
    const auto& figures = std::get<Figures>(outcome);
    result.iteration_time = figures.iteration_time;
    result.breakdown = figures.breakdown;
    result.fits = figures.fits;
  }
  return results;
}

Explained explain(const Scenario& scenario, const Library& library, std::size_t at_once,
                  const std::function<void(std::size_t)>& on_done, EngineKind engine) {
  // Before the engine of this process is made, which forked children could not share.
  std::vector<WhatIfResult> results =
      simulate_what_ifs(scenario, library, what_ifs(scenario, library), at_once, on_done, engine);
  std::stable_sort(results.begin(), results.end(), gains_more);
  SimulateOptions options;
  options.engine = engine;
  options.keep_timeline = true;
  options.evidence = &library;
  Explained explained;
  explained.simulation = simulate(scenario, options);
  Simulation& simulation = explained.simulation;
  explained.explanation = explain_path(std::move(simulation.report), scenario.plan,
                                       simulation.programs, simulation.timeline);
  explained.explanation.what_ifs = std::move(results);
  return explained;
}

}  // namespace windtunnel
