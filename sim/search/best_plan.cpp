#include "search/best_plan.hpp"

#include <utility>
#include <variant>

#include "core/problem.hpp"
#include "search/search_segment.hpp"

namespace windtunnel {

Scenario with_best_plan(Scenario scenario, const RankOptions& options, const char* asked_at) {
  scenario = on_segment_of_search(std::move(scenario));
  const RankResult result = rank_plans(scenario, options);
  if (result.plans.empty())
    throw InputError(
        {{{}, asked_at, "no plan of the search fits on this cluster", "use more nodes"}});
  scenario.plan = std::get<Plan>(lay_out(scenario, result.space, result.plans.front().choice));
  return scenario;
}

std::function<Scenario(Scenario)> plan_chooser(const char* asked_at) {
  return [asked_at](Scenario scenario) {
    RankOptions options;
    options.top = 1;
    return with_best_plan(std::move(scenario), options, asked_at);
  };
}

}  // namespace windtunnel
