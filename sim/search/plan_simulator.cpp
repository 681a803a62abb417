#include "search/plan_simulator.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <variant>

#include "report/report_words.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {
namespace {

PlanFigures plan_or_throw(const TaskOutcome<PlanFigures>& outcome, const PlanChoice& choice) {
  const auto* failure = std::get_if<ChildFailure>(&outcome);
  if (failure == nullptr) return std::get<PlanFigures>(outcome);
  const std::string text =
      "plan " + detail::plan_text(choice.training, choice.parallel) + ": " + failure->text;
  if (failure->kind == FailureKind::environment) throw EnvironmentError(text);
  throw std::runtime_error(text);
}

/// Passes of one replica, by which the times of simulations go.
double num_passes(const PlanChoice& choice) {
  const Parallel& parallel = choice.parallel;
  const int samples_at_once = choice.training.micro_batch * parallel.data;
  return static_cast<double>(choice.training.global_batch) / samples_at_once * parallel.pipeline *
         parallel.virtual_pipeline;
}

/// The indices of plans, those that take longest first: so that threads end at about the same time.
std::vector<std::size_t> longest_first(const std::vector<const PlanChoice*>& choices) {
  std::vector<std::size_t> order(choices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return num_passes(*choices[a]) > num_passes(*choices[b]);
  });
  return order;
}

}  // namespace

std::vector<PlanFigures> simulate_plans(const Scenario& base, const SearchSpace& space,
                                        const std::vector<const PlanChoice*>& choices,
                                        std::size_t at_once) {
  const std::vector<std::size_t> order = longest_first(choices);
  const auto outcomes = run_tasks<PlanFigures>(
      {.count = choices.size(), .at_once = at_once, .work = [&](std::size_t i) {
         return simulate_plan(base, std::get<Plan>(lay_out(base, space, *choices[order[i]])));
       }});
  std::vector<std::size_t> place(choices.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<PlanFigures> simulated;
  for (std::size_t i = 0; i < choices.size(); ++i)
    simulated.push_back(plan_or_throw(outcomes[place[i]], *choices[i]));
  return simulated;
}

}  // namespace windtunnel
