#include "studies/method_choice.hpp"

#include <algorithm>
#include <cmath>

#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using detail::indent;
using detail::Painter;
using detail::Tone;

struct Preferred {
  PlanChoice choice;
  BaselinePreference preference;
  bool fits = true;
};

/// None of the methods knows more axes than tensor, pipeline, data and microbatch: where the file lists none, plans differ in these, so
/// that theirs and ours are chosen from the same.
Scenario with_axes_of_methods(Scenario scenario) {
  if (!scenario.search.values.empty()) return scenario;
  const SearchSpace everything = search_space(scenario);
  for (const char* axis : {"tensor", "pipeline", "micro_batch"})
    scenario.search.values[axis] = everything.of(axis);
  return scenario;
}

/// The plans in the method's order; those of equal preference in the order of enumeration.
std::vector<Preferred> preferred_plans(const Scenario& base, const SearchSpace& space,
                                       MethodChoice& choice) {
  std::vector<Preferred> list;
  Scenario candidate = base;
  for (const PlanChoice& each : enumerate_plans(base, space)) {
    auto laid_out = lay_out(base, space, each);
    if (!std::holds_alternative<Plan>(laid_out)) continue;
    ++choice.considered;
    candidate.plan = std::move(std::get<Plan>(laid_out));
    const auto preference = baseline_preference(choice.method, candidate);
    if (!preference) {
      ++choice.left_out;
      continue;
    }
    const bool fits = check_memory(base, candidate.plan, base.search.memory_margin).fits;
    list.push_back({each, *preference, fits});
  }
  std::stable_sort(list.begin(), list.end(), [](const Preferred& a, const Preferred& b) {
    return a.preference < b.preference;
  });
  return list;
}

std::string memory_text(const MethodPick& pick) {
  return to_text(pick.memory_max) + (pick.fits ? "" : "  DOES NOT FIT");
}

std::string row(const std::string& number, const std::string& estimate, const std::string& time,
                const std::string& plan, const std::string& memory) {
  constexpr int number_width = 3, time_width = 12, plan_width = 52;
  std::string line = std::string(indent) + right_aligned(number, number_width) +
                     right_aligned(estimate, time_width) + right_aligned(time, time_width) + "  " +
                     left_aligned(plan, plan_width) + "  " + memory;
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

/// How much slower the first pick is than the best plan that fits.
double cost_of_pick(const MethodChoice& choice) {
  return choice.picks.front().time / choice.best.front().time - 1;
}

std::string conclusion(const MethodChoice& choice) {
  if (choice.best.empty()) return "No plan of the search fits in memory.";
  const std::string best =
      "The best plan that fits, by simulation, takes " + to_text(choice.best.front().time) + ": " +
      detail::plan_text(choice.best.front().choice.training, choice.best.front().choice.parallel) +
      ".";
  if (choice.picks.empty()) return best;
  const std::string name = name_of(choice.method);
  if (!choice.picks.front().fits)
    return best + " What " + name + " would pick does not fit in memory.";
  return best + " What " + name + " would pick takes " + percent_text(cost_of_pick(choice)) +
         " longer.";
}

/// How far the method's estimates of its picks are from their simulations.
double mean_error(const MethodChoice& choice) {
  double sum = 0;
  for (const MethodPick& pick : choice.picks) sum += std::abs(pick.estimate / pick.time - 1);
  return sum / static_cast<double>(choice.picks.size());
}

std::string error_text(const MethodChoice& choice) {
  if (choice.picks.size() < 2) return "";
  return " Its estimates of these " + std::to_string(choice.picks.size()) + " plans are " +
         percent_text(mean_error(choice)) + " off on average.";
}

JsonValue pick_value(const MethodPick& pick) {
  return object_of({{"plan", detail::plan_text(pick.choice.training, pick.choice.parallel)},
                    {"estimate_s", pick.estimate},
                    {"iteration_time_s", pick.time},
                    {"memory_max_bytes", pick.memory_max.value()},
                    {"fits", pick.fits}});
}

}  // namespace

MethodChoice choose_by(Baseline method, const Scenario& scenario, const RankOptions& options) {
  MethodChoice choice;
  choice.method = method;
  const Scenario base = with_axes_of_methods(scenario);
  const SearchSpace space = search_space(base);
  std::vector<Preferred> list = preferred_plans(base, space, choice);
  list.resize(std::min(list.size(), static_cast<std::size_t>(options.top)));
  std::vector<const PlanChoice*> choices;
  for (const Preferred& each : list) choices.push_back(&each.choice);
  const auto simulated = simulate_plans(base, space, choices, options.at_once);
  for (std::size_t i = 0; i < list.size(); ++i)
    choice.picks.push_back({list[i].choice, list[i].preference.estimate,
                            simulated[i].iteration_time, simulated[i].memory.max_total,
                            list[i].fits});
  RankOptions best = options;
  best.top = 1;
  choice.best = rank_plans(base, best).plans;
  return choice;
}

std::string method_text(const Scenario& base, const MethodChoice& choice, Colour colour) {
  const Painter paint(colour);
  const std::string name = name_of(choice.method);
  std::string text =
      paint(Tone::heading, base.name) + "\n\n" +
      detail::paragraph("What " + name + " would pick of " + std::to_string(choice.considered) +
                        " plans (" + std::to_string(choice.left_out) +
                        " left out by the method), and what that costs:") +
      "\n" + paint(Tone::heading, row("#", name, "simulated", "plan", "memory"));
  for (std::size_t i = 0; i < choice.picks.size(); ++i) {
    const MethodPick& pick = choice.picks[i];
    text += row(std::to_string(i + 1), to_text(pick.estimate), to_text(pick.time),
                detail::plan_text(pick.choice.training, pick.choice.parallel), memory_text(pick));
  }
  return text + "\n" + detail::paragraph(conclusion(choice) + error_text(choice));
}

JsonValue method_value(const MethodChoice& choice) {
  const bool is_any = !choice.picks.empty();
  JsonValue value = object_of({{"schema", "windtunnel/method-v1"},
                               {"method", name_of(choice.method)},
                               {"considered", choice.considered},
                               {"left_out", choice.left_out},
                               {"plans", array_of(choice.picks, pick_value)}});
  if (is_any) value.set("mean_error", JsonValue(mean_error(choice)));
  if (choice.best.empty()) return value;
  const auto& best = choice.best.front();
  add_members(value, {{"best_plan", detail::plan_text(best.choice.training, best.choice.parallel)},
                      {"best_iteration_time_s", best.time}});
  if (is_any) value.set("cost_of_pick", JsonValue(cost_of_pick(choice)));
  return value;
}

}  // namespace windtunnel
