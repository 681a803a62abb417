#include "scenario/explanation.hpp"

#include <algorithm>

#include "report/report_json.hpp"

namespace windtunnel {
namespace {

/// What could be simulated before what could not, the shortest iteration first.
bool gains_more(const WhatIfResult& a, const WhatIfResult& b) {
  if (a.failure.empty() != b.failure.empty()) return a.failure.empty();
  return a.iteration_time < b.iteration_time;
}

JsonValue slack_value(const Slack& slack) {
  JsonValue value{JsonValue::Object{}};
  value.set("what", JsonValue(slack.what));
  value.set("busy_s", JsonValue(slack.busy.value()));
  value.set("on_path_s", JsonValue(slack.on_path.value()));
  value.set("slack_s", JsonValue(slack.least.value()));
  return value;
}

JsonValue share_value(const PathShare& share, Seconds whole) {
  JsonValue value{JsonValue::Object{}};
  value.set("what", JsonValue(share.what));
  value.set("line", JsonValue(std::string(name_of(share.line))));
  value.set("time_s", JsonValue(share.time.value()));
  value.set("share", JsonValue(share.time / whole));
  value.set("steps", JsonValue(std::int64_t{share.steps}));
  return value;
}

JsonValue what_if_value(const WhatIfResult& result, Seconds now) {
  JsonValue value{JsonValue::Object{}};
  value.set("what", JsonValue(result.change.what));
  JsonValue set{JsonValue::Object{}};
  for (const auto& [pointer, text] : result.change.overrides) set.set(pointer, JsonValue(text));
  value.set("set", set);
  if (!result.failure.empty()) {
    value.set("failure", JsonValue(result.failure));
    return value;
  }
  value.set("iteration_time_s", JsonValue(result.iteration_time.value()));
  value.set("change", JsonValue(result.iteration_time / now - 1));
  JsonValue breakdown{JsonValue::Object{}};
  for (int line = 0; line < num_lines; ++line)
    breakdown.set(name_of(static_cast<Line>(line)),
                  JsonValue(result.breakdown.of(static_cast<Line>(line)).value()));
  value.set("breakdown_s", breakdown);
  return value;
}

template <typename List, typename ToValue>
JsonValue list_value(const List& list, ToValue to_value) {
  JsonValue::Array array;
  for (const auto& each : list) array.push_back(to_value(each));
  return JsonValue(std::move(array));
}

}  // namespace

Explanation explain(const Scenario& scenario, const Library& library, std::size_t at_once,
                    const std::function<void(std::size_t)>& on_done) {
  Explanation explanation;
  // Children first: they are forked while this process has made no engine.
  explanation.what_ifs = simulate_what_ifs(scenario, library, what_ifs(scenario), at_once, on_done);
  std::stable_sort(explanation.what_ifs.begin(), explanation.what_ifs.end(), gains_more);
  SimulateOptions options;
  options.keep_timeline = true;
  options.evidence = &library;
  const Simulation simulation = simulate(scenario, options);
  const Plan& plan = scenario.plan;
  const CriticalPath path = find_critical_path(simulation.programs, simulation.timeline);
  explanation.report = simulation.report;
  explanation.path = path_shares(plan, simulation.programs, simulation.timeline, path);
  explanation.stages = stage_slack(plan, simulation.timeline, path);
  explanation.links = link_slack(plan, simulation.programs, simulation.timeline, path);
  return explanation;
}

JsonValue explanation_value(const Explanation& explanation) {
  const Seconds whole = explanation.report.iteration_time;
  JsonValue value{JsonValue::Object{}};
  value.set("schema", JsonValue(std::string("windtunnel/explanation-v1")));
  value.set("iteration_time_s", JsonValue(whole.value()));
  value.set("critical_path", list_value(explanation.path, [whole](const PathShare& share) {
              return share_value(share, whole);
            }));
  value.set("stages", list_value(explanation.stages, slack_value));
  value.set("links", list_value(explanation.links, slack_value));
  value.set("what_ifs", list_value(explanation.what_ifs, [whole](const WhatIfResult& result) {
              return what_if_value(result, whole);
            }));
  value.set("report", report_value(explanation.report));
  return value;
}

}  // namespace windtunnel
