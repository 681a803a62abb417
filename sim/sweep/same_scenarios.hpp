#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "sweep/parts.hpp"
#include "sweep/points.hpp"

namespace windtunnel {

/// Points by the id of their scenario: those of one list differ in swept values that change nothing.
using SameScenarios = std::vector<std::vector<std::size_t>>;

/// The points that share an id with another, in the order of the first of each list.
SameScenarios same_scenarios(const std::map<std::size_t, std::string>& ids);
/// The same of rows.
SameScenarios same_scenarios(const PartRows& rows);

/// What to tell a person, empty where all differ:
///   96 points are 6 different scenarios
///     points 0 and 1 differ in /parallel/virtual_pipeline (1, 2), which changes nothing
std::string same_scenarios_text(const SameScenarios& same, const SweepPoints& points,
                                std::size_t num_known);

}  // namespace windtunnel
