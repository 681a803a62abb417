#include "search/plan_explanation.hpp"

#include "search/lower_bound.hpp"

namespace windtunnel {
namespace {

RankedPlan simulated_plan(const Scenario& base, const PlanExplanation& explanation,
                          const Plan& plan, const RankResult& result) {
  const PlanChoice& choice = explanation.choice;
  const PlanFigures simulated = simulate_plans(base, result.space, {&choice}, 1).front();
  const Seconds bound =
      lower_bound({&base.model, &base.platform, &base.nodes, &base.software, &plan});
  return {choice, plan.microbatches,          RankMethod::simulated,       simulated.iteration_time,
          bound,  simulated.memory.max_total, explanation.memory->verdict, simulated.breakdown,
          {}};
}

}  // namespace

PlanExplanation explain_plan(const Scenario& base, const PlanChoice& choice,
                             const RankResult& result) {
  PlanExplanation explanation;
  explanation.choice = choice;
  if (!result.plans.empty()) explanation.best = result.plans.front();
  const auto laid_out = lay_out(base, result.space, choice);
  if (const auto* rejections = std::get_if<std::vector<PlanRejection>>(&laid_out)) {
    explanation.shape = *rejections;
    return explanation;
  }
  const Plan& plan = std::get<Plan>(laid_out);
  explanation.memory = check_memory(base, plan, base.search.memory_margin);
  if (explanation.memory->fits)
    explanation.simulated = simulated_plan(base, explanation, plan, result);
  return explanation;
}

}  // namespace windtunnel
