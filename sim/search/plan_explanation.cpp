#include "search/plan_explanation.hpp"

#include <algorithm>

#include "report/number_text.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"
#include "search/lower_bound.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using detail::indent;
using detail::marked;
using detail::Painter;
using detail::Tone;
using detail::with_spaces;

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

std::string shape_text(const PlanExplanation& explanation, const Painter& paint) {
  std::string text;
  for (const PlanRejection& rejection : explanation.shape)
    text += marked(
        "✗",
        rejection.message + (rejection.suggestion.empty() ? "" : " (" + rejection.suggestion + ")"),
        Tone::bad, paint);
  return text;
}

std::string row(const std::string& name, Seconds time, Seconds best) {
  constexpr int name_width = 18, column = 12;
  const Seconds difference = time - best;
  return std::string(indent) + left_aligned(name, name_width) +
         right_aligned(fixed_text(time / 1_s, 3) + " s", column) +
         right_aligned(fixed_text(best / 1_s, 3) + " s", column) +
         right_aligned((difference < Seconds{0} ? "−" : "+") +
                           fixed_text(std::max(difference, -difference) / 1_s, 3) + " s",
                       column) +
         "\n";
}

/// The two breakdowns side by side, without lines that are nothing in both.
std::string comparison(const RankedPlan& plan, const RankedPlan& best, const Painter& paint) {
  std::string text =
      "\n" + std::string(indent) +
      paint(Tone::quiet, left_aligned("", 18) + right_aligned("this plan", 12) +
                             right_aligned("best plan", 12) + right_aligned("difference", 12)) +
      "\n";
  for (const Line line : all_lines) {
    constexpr Seconds least = 500_us;  // what rounds to a millisecond
    const Seconds mine = plan.breakdown.of(line), other = best.breakdown.of(line);
    if (std::max(mine, other) >= least) text += row(with_spaces(name_of(line)), mine, other);
  }
  return text + row("iteration", plan.time, best.time);
}

std::string legal_text(const PlanExplanation& explanation, const Painter& paint) {
  const RankedPlan& plan = *explanation.simulated;
  const std::string facts =
      to_text(plan.time) + " per iteration, " + to_text(plan.memory_max) + " of memory";
  if (!explanation.best || explanation.best->method == RankMethod::estimated)
    return marked("~", facts + "; the search found no plan to compare it with", Tone::doubtful,
                  paint);
  const RankedPlan& best = *explanation.best;
  if (plan.time <= best.time)
    return marked("✓", facts + ": no plan of the search is faster", Tone::good, paint);
  return marked("~",
                facts + ", " + percent_text(plan.time / best.time - 1) + " more than the best, " +
                    detail::plan_text(best.choice.training, best.choice.parallel),
                Tone::doubtful, paint) +
         comparison(plan, best, paint);
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

std::string explanation_text(const Scenario& base, const PlanExplanation& explanation,
                             Colour colour) {
  const Painter paint(colour);
  const std::string head = paint(Tone::heading, base.name) + "\n\n" +
                           detail::paragraph(detail::plan_text(explanation.choice.training,
                                                               explanation.choice.parallel));
  if (!explanation.shape.empty()) return head + shape_text(explanation, paint);
  if (!explanation.memory->fits)
    return head + marked("✗", "does not fit: " + text_of(*explanation.memory), Tone::bad, paint);
  return head + legal_text(explanation, paint);
}

}  // namespace windtunnel
