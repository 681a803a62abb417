#include "studies/method_command.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "report/document.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_view.hpp"
#include "report/report_words.hpp"
#include "search/rank.hpp"
#include "studies/baseline_estimators.hpp"

namespace windtunnel {
namespace {

using document::figure;
using document::Words;
using html::text_of_bytes;
using html::text_of_time;

/// A plan that another method would recommend, and what it costs by simulation.
struct MethodPick {
  PlanChoice choice;
  Seconds estimate{};  ///< what the method thinks it takes
  Seconds time{};      ///< simulated
  Bytes memory_max{};
  bool fits = true;  ///< in memory, with the margin of the search
};

/// Plans that AMP, Varuna, Pipette or Megatron's rule of thumb would have picked of the same ones.
struct MethodChoice {
  Baseline method = Baseline::amp;
  std::size_t considered = 0;  ///< plans that can be laid out
  std::size_t left_out =
      0;  ///< of them by the method itself: what it thinks does not fit, or does not know
  std::vector<MethodPick> picks;  ///< in the method's order, simulated
  std::vector<RankedPlan> best;   ///< the best plan by simulation, if any fits
  std::string note;               ///< what the comparison leaves out; empty: nothing
};

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
  std::ranges::stable_sort(list, {}, &Preferred::preference);
  return list;
}

/// Slowdown of the first pick against the best plan that fits.
double cost_of_pick(const MethodChoice& choice) {
  return choice.picks.front().time / choice.best.front().time - 1;
}

/// Mean error of the method's estimates of its picks against their simulations.
double mean_error(const MethodChoice& choice) {
  double sum = 0;
  for (const MethodPick& pick : choice.picks) sum += std::abs(pick.estimate / pick.time - 1);
  return sum / static_cast<double>(choice.picks.size());
}

Words conclusion(const MethodChoice& choice, const JsonValue& data) {
  if (choice.best.empty()) return "No plan of the search fits in memory.";
  const PlanChoice& best = choice.best.front().choice;
  const std::string name = name_of(choice.method);
  Words text = "The best plan that fits, by simulation, takes " +
               figure(data, "/best_iteration_time_s", text_of_time) + ": " +
               detail::plan_text(best.training, best.parallel) + ".";
  if (choice.picks.empty()) return text;
  if (!choice.picks.front().fits)
    return text + " What " + name + " would pick does not fit in memory.";
  return text + " What " + name + " would pick takes " +
         figure(data, "/cost_of_pick", percent_text) + " longer.";
}

Words error_words(const MethodChoice& choice, const JsonValue& data) {
  if (choice.picks.size() < 2) return "";
  return " Its estimates of these " + std::to_string(choice.picks.size()) + " plans are " +
         figure(data, "/mean_error", percent_text) + " off on average.";
}

JsonValue pick_value(const MethodPick& pick) {
  return object_of({{"plan", detail::plan_text(pick.choice.training, pick.choice.parallel)},
                    {"estimate_s", pick.estimate},
                    {"iteration_time_s", pick.time},
                    {"memory_max_bytes", pick.memory_max.value()},
                    {"fits", pick.fits}});
}

JsonValue method_value(const MethodChoice& choice) {
  const bool is_any = !choice.picks.empty();
  JsonValue value = object_of({{"schema", "windtunnel/method-v1"},
                               {"method", name_of(choice.method)},
                               {"considered", choice.considered},
                               {"left_out", choice.left_out},
                               {"note", only_if(!choice.note.empty(), choice.note)},
                               {"plans", array_of(choice.picks, pick_value)}});
  if (is_any) value.set("mean_error", JsonValue(mean_error(choice)));
  if (choice.best.empty()) return value;
  const auto& best = choice.best.front();
  add_members(value, {{"best_plan", detail::plan_text(best.choice.training, best.choice.parallel)},
                      {"best_iteration_time_s", best.time}});
  if (is_any) value.set("cost_of_pick", JsonValue(cost_of_pick(choice)));
  return value;
}

/// Orders the plans of the space around `base` as the method does, and simulates the first `options.top` of them and the best of ours.
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
  if (space.balances_layers)
    choice.note = "Plans of " + std::string(name_of(method)) +
                  " divide the layers evenly here; the stages of our best plan are balanced.";
  RankOptions best = options;
  best.top = 1;
  choice.best = rank_plans(base, best).plans;
  return choice;
}

/// The method's picks, and how much slower the first is than the best.
document::Document method_document(const Scenario& base, const MethodChoice& choice) {
  const JsonValue data = method_value(choice);
  const std::string name = name_of(choice.method);
  document::Table table{"rrrr?lw", {{"#", name, "simulated", "memory", "fits", "plan"}}};
  for (std::size_t i = 0; i < choice.picks.size(); ++i) {
    const MethodPick& pick = choice.picks[i];
    const std::string at = "/plans/" + std::to_string(i);
    table.rows.push_back({std::to_string(i + 1), figure(data, at + "/estimate_s", text_of_time),
                          figure(data, at + "/iteration_time_s", text_of_time),
                          figure(data, at + "/memory_max_bytes", text_of_bytes),
                          pick.fits ? "yes" : "no",
                          detail::plan_text(pick.choice.training, pick.choice.parallel)});
  }
  return {data,
          "rank",
          base.name,
          {"", "What " + name + " would pick of " + figure(data, "/considered", grouped_text) +
                   " plans (" + figure(data, "/left_out", grouped_text) +
                   " left out by the method), and what that costs:"},
          "",
          {},
          {{"picks",
            "Picks",
            "",
            {std::move(table), Words(),
             conclusion(choice, data) + error_words(choice, data) +
                 (choice.note.empty() ? "" : " " + choice.note)}}},
          "windtunnel rank --method " + name + " --json"};
}

}  // namespace

RankAnswer run_method(const Scenario& base, const RankRequest& request, std::ostream& messages) {
  ProgressLine line(messages, request.progress);
  const Baseline method = enumerator_named<Baseline>(request.method).value();
  const MethodChoice choice = choose_by(method, base, rank_options(request, line));
  return {method_document(base, choice), !choice.picks.empty() && choice.picks.front().fits};
}

}  // namespace windtunnel
