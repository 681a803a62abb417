#include "questions/explain.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "questions/what_if.hpp"
#include "simulate/forked.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

/// What a child sends home.
struct Figures {
  Seconds iteration_time{};
  Breakdown breakdown;
  bool fits = true;
};
static_assert(std::is_trivially_copyable_v<Figures>);

/// What could be simulated before what could not, the shortest iteration first.
bool gains_more(const WhatIfResult& a, const WhatIfResult& b) {
  if (a.failure.empty() != b.failure.empty()) return a.failure.empty();
  return a.iteration_time < b.iteration_time;
}

}  // namespace

std::vector<WhatIfResult> simulate_what_ifs(const Scenario& scenario, const Library& library,
                                            const std::vector<WhatIf>& changes, std::size_t at_once,
                                            const std::function<void(std::size_t)>& on_done) {
  ForkedWork work;
  work.count = changes.size();
  work.at_once = at_once;
  work.on_done = on_done;
  work.work = [&](std::size_t i) {
    const Scenario changed = read_scenario(scenario.resolved, library.root, library,
                                           {changes[i].overrides, scenario.seed});
    const Report report = simulate(changed).report;
    const Figures figures{report.iteration_time, report.breakdown, report.memory.fits};
    return std::string(reinterpret_cast<const char*>(&figures), sizeof figures);
  };
  std::vector<WhatIfResult> results;
  for (const ChildOutcome& outcome : run_forked(work)) {
    WhatIfResult& result = results.emplace_back();
    result.change = changes[results.size() - 1];
    if (const auto* failure = std::get_if<ChildFailure>(&outcome)) {
      result.failure = failure->text;
      continue;
    }
    Figures figures;
    std::memcpy(&figures, std::get<std::string>(outcome).data(), sizeof figures);
    result.iteration_time = figures.iteration_time;
    result.breakdown = figures.breakdown;
    result.fits = figures.fits;
  }
  return results;
}

Explained explain(const Scenario& scenario, const Library& library, std::size_t at_once,
                  const std::function<void(std::size_t)>& on_done) {
  // Children first: they are forked while this process has made no engine.
  std::vector<WhatIfResult> results =
      simulate_what_ifs(scenario, library, what_ifs(scenario, library), at_once, on_done);
  std::stable_sort(results.begin(), results.end(), gains_more);
  SimulateOptions options;
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
