#include "search/plan_simulator.hpp"

#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>

#include "core/contracts.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

static_assert(std::is_trivially_copyable_v<SimulatedPlan>);

std::string simulated_bytes(const Scenario& base, const SearchSpace& space,
                            const PlanChoice& choice) {
  Scenario scenario = base;
  scenario.plan = std::get<Plan>(lay_out(base, space, choice));
  const Report report = simulate(scenario).report;
  const SimulatedPlan simulated{key_figures(report), report.breakdown};
  return {reinterpret_cast<const char*>(&simulated), sizeof simulated};
}

SimulatedPlan from_outcome(const ChildOutcome& outcome, const PlanChoice& choice,
                           const Scenario& base) {
  if (const auto* failure = std::get_if<ChildFailure>(&outcome)) {
    const std::string text = "plan " + text_of(choice, base) + ": " + failure->text;
    if (failure->kind == FailureKind::environment) throw EnvironmentError(text);
    throw std::runtime_error(text);
  }
  SimulatedPlan simulated;
  const std::string& bytes = std::get<std::string>(outcome);
  WT_EXPECT(bytes.size() == sizeof simulated);
  std::memcpy(&simulated, bytes.data(), sizeof simulated);
  return simulated;
}

}  // namespace

std::vector<SimulatedPlan> simulate_plans(const Scenario& base, const SearchSpace& space,
                                          const std::vector<const PlanChoice*>& choices,
                                          std::size_t at_once) {
  ForkedWork work;
  work.count = choices.size();
  work.at_once = at_once;
  work.work = [&](std::size_t i) { return simulated_bytes(base, space, *choices[i]); };
  const std::vector<ChildOutcome> outcomes = run_forked(work);
  std::vector<SimulatedPlan> simulated;
  for (std::size_t i = 0; i < choices.size(); ++i)
    simulated.push_back(from_outcome(outcomes[i], *choices[i], base));
  return simulated;
}

}  // namespace windtunnel
