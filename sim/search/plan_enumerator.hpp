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

/// The same in two steps, of which the second can be taken on several threads and need not keep all plans at once: every combination of
/// tensor, pipeline, context, data and micro_batch, and the plans with those of one.
std::vector<PlanChoice> enumerate_heads(const Scenario& base, const SearchSpace& space);
std::vector<PlanChoice> enumerate_plans(const Scenario& base, const SearchSpace& space,
                                        const PlanChoice& head);

/// The choice as a plan on the space's cluster, or why it cannot be one.
std::variant<Plan, std::vector<PlanRejection>> lay_out(const Scenario& base,
                                                       const SearchSpace& space,
                                                       const PlanChoice& choice);

/// The same with what makes the plans of this cluster; the plan holds until it makes another.
std::variant<const Plan*, std::vector<PlanRejection>> lay_out(const Scenario& base,
                                                              const SearchSpace& space,
                                                              const PlanChoice& choice,
                                                              PlanMaker& maker);

}  // namespace windtunnel
