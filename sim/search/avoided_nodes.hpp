#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scenario/scenario.hpp"
#include "search/rank.hpp"

namespace windtunnel {

/// The scenario on other nodes than these, the first that have its GPUs. `names`: nodes ("node3") and switches of the fabric ("leaf1",
/// "group0"), which stand for all nodes below them. InputError, of --avoid, where a name is unknown or too few GPUs are left.
std::pair<Scenario, AvoidedNodes> avoiding(Scenario base, const std::vector<std::string>& names);

}  // namespace windtunnel
