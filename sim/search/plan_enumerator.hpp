#pragma once

#include <variant>
#include <vector>

#include "plan/plan.hpp"
#include "search/search_space.hpp"

namespace windtunnel {

/// Every combination of the space, in the order of its lists; the same work under two names is there once (sequence
/// parallelism without tensor ways, sharding without replicas). Where tensor * pipeline does not divide the GPUs the choice
/// has data 0: it is no plan, and counts as one that was considered.
std::vector<PlanChoice> enumerate_plans(const Scenario& base, const SearchSpace& space);

/// The choice as a plan on the space's cluster, or why it cannot be one.
std::variant<Plan, std::vector<PlanRejection>> lay_out(const Scenario& base,
                                                       const SearchSpace& space,
                                                       const PlanChoice& choice);

}  // namespace windtunnel
