#pragma once

#include <functional>

#include "search/rank.hpp"

namespace windtunnel {

/// The scenario with the plan that rank_plans() puts first. InputError, of `asked_at`, where none fits.
Scenario with_best_plan(Scenario scenario, const RankOptions& options, const char* asked_at);

/// with_best_plan() for the points of a sweep, one thread each.
std::function<Scenario(Scenario)> plan_chooser(const char* asked_at);

}  // namespace windtunnel
