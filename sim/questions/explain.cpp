#include "questions/explain.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "evidence/evidence.hpp"
#include "evidence/interval.hpp"
#include "questions/what_if.hpp"
#include "simulate/built_scenario.hpp"
#include "simulate/simulate.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {
namespace {

using Clock = std::chrono::steady_clock;

/// What could be simulated before what could not, the largest gain times how sure its sign is first.
class GainsMore {
 public:
  explicit GainsMore(Seconds now) : now_(now) {}
  bool operator()(const WhatIfResult& a, const WhatIfResult& b) const {
    if (a.failure.empty() != b.failure.empty()) return a.failure.empty();
    return expected_gain(a) > expected_gain(b);
  }

 private:
  double expected_gain(const WhatIfResult& result) const {
    return (1 - result.iteration_time / now_) * (result.ordering ? result.ordering->sure : 1);
  }

  Seconds now_;
};

/// explain(), one step a function.
class Explainer {
 public:
  Explainer(const Scenario& scenario, const Library& library, const ExplainOptions& options)
      : scenario_(scenario),
        library_(library),
        errors_(read_evidence(library)),
        options_(options),
        start_(Clock::now()) {}

  Explained explain() {
    Explained explained = explained_path();
    std::vector<WhatIfResult> results = what_ifs_beside(explained);
    judge(explained.explanation.report, results);
    std::ranges::stable_sort(results, GainsMore(explained.explanation.report.iteration_time));
    explained.explanation.what_ifs = std::move(results);
    return explained;
  }

 private:
  /// The scenario as it is.
  Explained explained_path() const {
    SimulateOptions options;
    options.keep_timeline = true;
    Explained explained;
    explained.simulation = simulate(scenario_, options);
    Simulation& simulation = explained.simulation;
    if (!errors_.regimes.empty()) add_interval(scenario_, errors_, simulation.report);
    explained.explanation = explain_path(std::move(simulation.report), scenario_.plan,
                                         simulation.programs, simulation.timeline);
    return explained;
  }

  /// How sure it is of each change that it gains, or loses.
  void judge(const Report& report, std::vector<WhatIfResult>& results) const {
    const JudgedRun now = judged_run(scenario_, report.iteration_time, report.breakdown, {});
    for (WhatIfResult& result : results) {
      if (!result.failure.empty() || !is_choice(result.change.kind)) continue;
      JudgedRun changed = now;
      changed.time = result.iteration_time;
      changed.breakdown = result.breakdown;
      result.ordering = order(now, changed, errors_.pairs);
    }
  }

  /// In the order of what_ifs().
  std::vector<WhatIfResult> what_ifs_beside(const Explained& explained) const {
    const Explanation& explanation = explained.explanation;
    const PathBound bound(scenario_, explained.simulation, explanation.path);
    std::vector<WhatIfResult> results;
    std::vector<std::size_t> asked;
    for (WhatIf& change : what_ifs(scenario_, library_)) {
      WhatIfResult& result = results.emplace_back();
      if (const auto saved = bound.most_saved(change))
        result.saves_at_most = *saved / explanation.report.iteration_time;
      result.change = std::move(change);
      if (result.saves_at_most.value_or(1) >= least_saving) {
        asked.push_back(results.size() - 1);
        continue;
      }
      result.fate = WhatIfFate::cannot_matter;
      result.failure = "not simulated: the critical path lets it save less than 0.2 %";
    }
    leave_out_lesser_kinds(asked, results);
    simulate_asked(asked, results);
    return results;
  }

  /// Of each question that is asked of many kinds of node, keeps those of the kinds that may save most.
  static void leave_out_lesser_kinds(std::vector<std::size_t>& asked,
                                     std::vector<WhatIfResult>& results) {
    const auto question = [&](std::size_t i) {
      const std::string& what = results[i].change.what;
      return what.substr(0, what.find(" ("));
    };
    std::map<std::string, std::vector<std::size_t>> by_question;
    for (const std::size_t i : asked)
      if (results[i].saves_at_most) by_question[question(i)].push_back(i);
    for (auto& [ignored, same] : by_question) {
      if (same.size() <= most_kinds) continue;
      std::ranges::stable_sort(same, [&](std::size_t a, std::size_t b) {
        return *results[a].saves_at_most > *results[b].saves_at_most;
      });
      for (std::size_t k = most_kinds; k < same.size(); ++k) {
        results[same[k]].fate = WhatIfFate::over_budget;
        results[same[k]].failure = "not simulated: other kinds of node may save more";
      }
    }
    std::erase_if(asked, [&](std::size_t i) { return results[i].fate != WhatIfFate::simulated; });
  }

  /// What may save most first, what has no bound before all others.
  void simulate_asked(std::vector<std::size_t> asked, std::vector<WhatIfResult>& results) const {
    const auto may_save = [&](std::size_t i) { return results[i].saves_at_most.value_or(1); };
    std::ranges::stable_sort(
        asked, [&](std::size_t a, std::size_t b) { return may_save(a) > may_save(b); });
    std::vector<WhatIf> changes;
    for (const std::size_t i : asked) changes.push_back(results[i].change);
    const auto on_done = [&](std::size_t done) {
      if (options_.on_done) options_.on_done(done, asked.size());
    };
    const auto is_over = [this] {
      return options_.budget && std::chrono::duration<double>(Clock::now() - start_).count() >=
                                    *options_.budget / Seconds{1};
    };
    std::vector<WhatIfResult> simulated =
        simulate_what_ifs(scenario_, library_, changes, options_.at_once, on_done, is_over);
    for (std::size_t k = 0; k < asked.size(); ++k) {
      simulated[k].saves_at_most = results[asked[k]].saves_at_most;
      results[asked[k]] = std::move(simulated[k]);
    }
  }

  /// Of the iteration: less is not worth a simulation.
  static constexpr double least_saving = 0.002;
  /// Of one question.
  static constexpr std::size_t most_kinds = 8;

  const Scenario& scenario_;
  const Library& library_;
  MeasuredErrors errors_;
  const ExplainOptions& options_;
  Clock::time_point start_;
};

}  // namespace

std::vector<WhatIfResult> simulate_what_ifs(const Scenario& scenario, const Library& library,
                                            const std::vector<WhatIf>& changes, std::size_t at_once,
                                            const std::function<void(std::size_t)>& on_done,
                                            const std::function<bool()>& is_over) {
  Tasks<std::optional<PlanFigures>> tasks;  // none: over budget
  tasks.count = changes.size();
  tasks.at_once = at_once;
  tasks.on_done = on_done;
  tasks.work = [&](std::size_t i) -> std::optional<PlanFigures> {
    if (is_over && is_over()) return std::nullopt;
    const Scenario changed = read_scenario(scenario.resolved, library.root, library,
                                           {changes[i].overrides, scenario.seed});
    return simulate_plan(changed, changed.plan);
  };
  std::vector<WhatIfResult> results;
  for (const auto& outcome : run_tasks(tasks)) {
    WhatIfResult& result = results.emplace_back();
    result.change = changes[results.size() - 1];
    if (const auto* failure = std::get_if<ChildFailure>(&outcome)) {
      result.failure = failure->text;
      result.fate = WhatIfFate::failed;
      continue;
    }
    const auto& figures = std::get<std::optional<PlanFigures>>(outcome);
    if (!figures) {
      result.failure = "not simulated: the budget was spent";
      result.fate = WhatIfFate::over_budget;
      continue;
    }
    result.iteration_time = figures->iteration_time;
    result.breakdown = figures->breakdown;
    result.fits = figures->memory.fits;
  }
  return results;
}

Explained explain(const Scenario& scenario, const Library& library, const ExplainOptions& options) {
  return Explainer(scenario, library, options).explain();
}

}  // namespace windtunnel
