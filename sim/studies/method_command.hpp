#pragma once

#include <iosfwd>

#include "scenario/scenario.hpp"
#include "search/rank_command.hpp"

namespace windtunnel {

/// `windtunnel rank --method`: writes what the method that `request` names would have picked, and what that costs by simulation.
/// Returns the exit code: 0, or 1 when it picks no plan that fits in memory.
int run_method(const Scenario& base, const RankRequest& request, std::ostream& out,
               std::ostream& messages);

}  // namespace windtunnel
