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

/// A scenario whose plan a search will replace ("plan": "best"). As it is where its own plan is legal; else with the first plan that is,
/// of few tensor and pipeline degrees, so that nobody has to write one for each size of a cluster. Throws the InputError of its own plan
/// where none is legal, or where something else is wrong.
Scenario read_with_any_plan(const ReadWithValues& read);

}  // namespace windtunnel
