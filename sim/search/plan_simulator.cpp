#include "search/plan_simulator.hpp"

#include <stdexcept>
#include <string>
#include <variant>

#include "simulate/built_scenario.hpp"

namespace windtunnel {
namespace {

SimulatedPlan simulate_choice(const Scenario& base, const SearchSpace& space,
                              const PlanChoice& choice, EngineKind engine) {
  const PlanFigures simulated =
      simulate_plan(base, std::get<Plan>(lay_out(base, space, choice)), engine);
  return {{simulated.iteration_time, simulated.memory.max_total, simulated.memory.fits},
          simulated.breakdown};
}

SimulatedPlan plan_or_throw(const TaskOutcome<SimulatedPlan>& outcome, const PlanChoice& choice,
                            const Scenario& base) {
  const auto* failure = std::get_if<ChildFailure>(&outcome);
  if (failure == nullptr) return std::get<SimulatedPlan>(outcome);
  const std::string text = "plan " + text_of(choice, base) + ": " + failure->text;
  if (failure->kind == FailureKind::environment) throw EnvironmentError(text);
  throw std::runtime_error(text);
}

}  // namespace

std::vector<SimulatedPlan> simulate_plans(const Scenario& base, const SearchSpace& space,
                                          const std::vector<const PlanChoice*>& choices,
                                          std::size_t at_once, EngineKind engine) {
  const auto outcomes = run_tasks<SimulatedPlan>(
      engine, {.count = choices.size(), .at_once = at_once, .work = [&](std::size_t i) {
                 return simulate_choice(base, space, *choices[i], engine);
               }});
  std::vector<SimulatedPlan> simulated;
  for (std::size_t i = 0; i < choices.size(); ++i)
    simulated.push_back(plan_or_throw(outcomes[i], *choices[i], base));
  return simulated;
}

}  // namespace windtunnel
