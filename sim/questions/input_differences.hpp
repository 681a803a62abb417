#pragma once

#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "report/comparison.hpp"

namespace windtunnel {

/// Where the trees differ, in the order of the first that has the place: resolved scenarios, or the `job` of reports.
/// Objects that bear different names (models, platforms, devices, software profiles) differ in their names, not value by
/// value. Left out: names, descriptions, sources, `sweep` and `search`, which change nothing that is simulated.
std::vector<InputDifference> input_differences(const std::vector<const JsonValue*>& trees);

}  // namespace windtunnel
