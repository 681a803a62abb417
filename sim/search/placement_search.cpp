#include "search/placement_search.hpp"

#include <stdexcept>
#include <utility>

#include "core/contracts.hpp"
#include "report/number_text.hpp"
#include "scenario/cluster_shape.hpp"
#include "search/placement_anneal.hpp"
#include "search/placement_why.hpp"
#include "simulate/built_scenario.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// The scenario with its ranks elsewhere; nothing else changes.
Scenario placed(const Scenario& scenario, const std::vector<int>& placement) {
  Scenario result = scenario;
  result.placement_request = PlacementRequest::as_planned;
  Parallel parallel = scenario.plan.parallel;
  parallel.placement = placement;
  ClusterShape cluster = first_nodes(scenario.platform, scenario.plan.num_nodes);
  cluster.nodes_given = true;
  auto made =
      make_plan(scenario.model, scenario.plan.training, parallel, cluster, scenario.software);
  WT_ENSURE(std::holds_alternative<Plan>(made));
  result.plan = std::get<Plan>(std::move(made));
  result.plan.compression = scenario.plan.compression;
  return result;
}

PlanFigures simulated(const Scenario& scenario) { return simulate_plan(scenario, scenario.plan); }

std::string percent_less(Seconds before, Seconds after) {
  return percent_text((before - after) / before);
}

/// "3.4 % less", "0.2 % more"
std::string change_text(Seconds before, Seconds after) {
  return after <= before ? percent_less(before, after) + " less"
                         : percent_text((after - before) / before) + " more";
}

std::string name_of_own(const Parallel& parallel) {
  if (!parallel.placement.empty()) return "the placement given";
  if (parallel.rank_order == default_rank_order) return "Megatron's order";
  return "the order " + text_of(parallel.rank_order);
}

/// Why a placement with a better estimate is not taken after all; empty when it is.
std::string why_not(const PlacementResult& result, const PlanFigures& before,
                    const PlanFigures& after) {
  if (before.memory.fits && !after.memory.fits)
    return "the best that was found does not fit in memory";
  if (after.memory.fits && !before.memory.fits) return {};
  if (after.iteration_time < before.iteration_time) return {};
  return "the best that was found is " +
         percent_less(result.estimate_before, result.estimate_after) +
         " faster by estimate, but not when simulated";
}

/// Estimates closer than this are the same: what sums in another order differ by.
constexpr double same = 1e-9;

}  // namespace

std::vector<int> placement_of(const Plan& plan, const std::vector<int>& slots) {
  std::vector<int> placement(static_cast<std::size_t>(plan.num_ranks()));
  for (std::size_t unit = 0; unit < plan.devices.size(); ++unit) {
    const PlanDevice& device = plan.devices[unit];
    const PlanDevice& place = plan.devices[static_cast<std::size_t>(slots[unit])];
    const int first = static_cast<int>(place.node.index()) * plan.gpus_per_node;
    for (std::size_t i = 0; i < device.ranks.size(); ++i)
      placement[device.ranks[i].index()] = first + place.gpus[i];
  }
  return placement;
}

PlacementResult search_placement(const Scenario& scenario, const PlacementOptions& options) {
  PlacementObjective objective(scenario);
  const PlacementObjective before_search = objective;
  PlacementResult result;
  result.placement = placement_of(scenario.plan, objective.slots());
  result.estimate_before = objective.value();
  const Annealed best = anneal(objective, {options.moves, options.seed});
  result.estimate_after = best.value;
  const PlanFigures before = simulated(placed(scenario, result.placement));
  result.simulated_before = result.simulated_after = before.iteration_time;
  const std::string own_name = name_of_own(scenario.plan.parallel);
  if (best.value >= result.estimate_before * (1 - same)) {
    result.why = "nothing better than " + own_name + " was found";
    return result;
  }
  const std::vector<int> found = placement_of(scenario.plan, best.slots);
  const PlanFigures after = simulated(placed(scenario, found));
  result.simulated_after = after.iteration_time;
  if (const std::string fault = why_not(result, before, after); !fault.empty()) {
    result.why = fault + "; " + own_name + " is kept";
    return result;
  }
  result.verdict = PlacementResult::Verdict::found;
  result.placement = found;
  result.why = after.memory.fits && !before.memory.fits
                   ? "every stage is on GPUs whose memory it fits in, unlike in " + own_name
                   : why_better(before_search, objective);
  result.why += " (" + to_text(before.iteration_time) + " in " + own_name + ", " +
                change_text(before.iteration_time, after.iteration_time) + ")";
  return result;
}

Scenario with_placement(const Scenario& scenario, const PlacementResult& result) {
  const bool found = result.verdict == PlacementResult::Verdict::found;
  Scenario changed = scenario;
  if (found) changed = placed(scenario, result.placement);
  changed.placement_request = PlacementRequest::as_planned;
  changed.placement_note = result.why;
  Origin origin;
  origin.kind = OriginKind::searched;
  JsonValue value(std::string("megatron"), origin);
  if (found) {
    JsonValue::Array places;
    for (const GpuPlace& place : changed.plan.places)
      places.emplace_back(std::to_string(place.node.index()) + ":" + std::to_string(place.gpu),
                          origin);
    value = JsonValue(std::move(places), origin);
  }
  if (found || scenario.placement_request == PlacementRequest::search) {
    const bool is_set = set_at(changed.resolved, "/parallel/placement", std::move(value));
    WT_ENSURE(is_set);
  }
  return changed;
}

Scenario place_if_asked(Scenario scenario) {
  if (scenario.placement_request != PlacementRequest::search) return scenario;
  PlacementOptions options;
  options.seed = scenario.seed;
  return with_placement(scenario, search_placement(scenario, options));
}

}  // namespace windtunnel
