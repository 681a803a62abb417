#pragma once

#include <iosfwd>

#include "scenario/scenario.hpp"
#include "search/rank_command.hpp"

namespace windtunnel {

/// `windtunnel rank --method`: describes what the method that `request` names would have picked, and what that costs by simulation.
/// Not positive where it picks no plan that fits in memory.
RankAnswer run_method(const Scenario& base, const RankRequest& request, std::ostream& messages);

}  // namespace windtunnel
