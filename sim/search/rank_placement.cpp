#include "search/rank_placement.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "search/placement_search.hpp"

namespace windtunnel {
namespace {

void place(const Scenario& base, const RankResult& result, RankedPlan& plan) {
  Scenario scenario = base;
  scenario.plan = std::get<Plan>(lay_out(base, result.space, plan.choice));
  PlacementResult found = search_placement(scenario, {.seed = base.seed});
  plan.placement_note = std::move(found.why);
  if (found.verdict != PlacementResult::Verdict::found) return;
  plan.choice.parallel.placement = std::move(found.placement);
  plan.time = found.simulated_after;
}

/// Who waits and who communicates is that of ranks in order.
double penalty_of(const ObjectiveValue& objective, const RankedPlan& plan) {
  return plan.method == RankMethod::simulated
             ? objective.penalty(plan.time, shares_of(plan.breakdown))
             : plan.least_penalty;
}

}  // namespace

void place_ranked_plans(const Scenario& base, RankResult& result) {
  if (base.search.placement != PlacementChoice::search &&
      base.placement_request != PlacementRequest::search)
    return;
  for (RankedPlan& plan : result.plans) {
    const Parallel& parallel = plan.choice.parallel;
    const bool owners_broadcast = parallel.zero_stage == 1 && base.software.broadcast_tensors > 0;
    if (plan.method != RankMethod::simulated || owners_broadcast ||
        (parallel.zero_group > 0 && parallel.zero_stage < 3))  // unsupported_requests()
      continue;
    place(base, result, plan);
    ++result.placements_searched;
  }
  const ObjectiveValue objective(base, base.search.objective, "/search/objective");
  for (RankedPlan& plan : result.plans) plan.penalty = penalty_of(objective, plan);
  std::stable_sort(result.plans.begin(), result.plans.end(),
                   [](const RankedPlan& a, const RankedPlan& b) {
                     return std::pair(a.method, a.penalty) < std::pair(b.method, b.penalty);
                   });
  if (result.placements_searched > 0)
    result.lower_bound = std::min(result.lower_bound, result.plans.front().time);
}

}  // namespace windtunnel
