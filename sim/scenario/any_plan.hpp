#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// Reads the scenario with these values on top: ReadOptions::values.
using ReadWithValues =
    std::function<Scenario(const std::vector<std::pair<std::string, JsonValue>>& values)>;

/// Whether the job of the scenario, `written` as a file has it, is of the plan that a search finds: `job.plan` is "best".
inline bool job_wants_best_plan(const JsonValue& written) {
  const JsonValue* const plan = find_at(written, "/job/plan");
  return plan != nullptr && plan->is_string() && plan->string() == "best";
}

/// A scenario whose plan a search will replace ("plan": "best"). As it is where its own plan is legal; else with the first plan that is,
/// of few tensor and pipeline degrees, so that nobody has to write one for each size of a cluster. It is for as many GPUs as the scenario
/// asks for: those of `nodes` or, where `written` has none, the product of the degrees of its `parallel` block; of `written`, the scenario
/// as a file has it, nothing else is looked at. Throws the InputError of its own plan where none is legal, where the number of GPUs is not
/// known, or where something else is wrong.
///
/// Unlike a search, which never catches, it catches the InputError of each plan that it tries, 40 at most: only reading a scenario tells
/// whether a plan is legal, and a search needs a scenario that has been read to begin with. It is called once for a scenario.
Scenario read_with_any_plan(const JsonValue& written, const ReadWithValues& read);

}  // namespace windtunnel
