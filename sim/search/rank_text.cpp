#include "search/rank_text.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "report/number_text.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"
#include "report/text_table.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using detail::indent;
using detail::marked;
using detail::Painter;
using detail::Tone;
using detail::with_spaces;

/// One column of the table: what each plan has in it.
struct Column {
  std::string title;
  char side = 'r';  ///< as in text_table()
  std::function<std::string(const RankedPlan&)> cell;
};

/// The lines of the breakdown that take most, at least a twentieth each: "compute 84 %, pipeline bubble 9 %".
std::string what_takes_the_time(const RankedPlan& plan) {
  constexpr double least_share = 0.05;
  constexpr std::size_t most_lines = 2;
  if (plan.method != RankMethod::simulated) return "not simulated: time is a lower bound";
  std::vector<Line> lines(all_lines.begin(), all_lines.end());
  std::stable_sort(lines.begin(), lines.end(),
                   [&](Line a, Line b) { return plan.breakdown.of(a) > plan.breakdown.of(b); });
  std::string text;
  for (std::size_t i = 0; i < most_lines; ++i) {
    const double share = plan.breakdown.of(lines[i]) / plan.time;
    if (i > 0 && share < least_share) break;
    text += (i > 0 ? ", " : "") + with_spaces(name_of(lines[i])) + " " +
            fixed_text(100 * share, 0) + " %";
  }
  return text;
}

/// Whether the plans of the table have the same value of the key.
bool agree_on(const Key& key, const std::vector<RankedPlan>& plans) {
  return std::all_of(plans.begin(), plans.end(), [&](const RankedPlan& plan) {
    return key.value.get(plan.choice) == key.value.get(plans.front().choice);
  });
}

/// Whether the key has no column since one line can speak for all plans.
bool is_said_once(const SearchKey& searched, const RankResult& result) {
  return !searched.varies_always && result.space.tries_everything &&
         agree_on(*searched.key, result.plans);
}

std::vector<Column> plan_columns(const RankResult& result) {
  std::vector<Column> columns;
  for (const SearchKey& searched : search_keys()) {
    const Key& key = *searched.key;
    const std::vector<int>& tried = result.space.of(key.name());
    const bool is_derived = tried.empty() && !agree_on(key, result.plans);
    if (!searched.varies_always &&
        ((tried.size() < 2 && !is_derived) || is_said_once(searched, result)))
      continue;
    const bool is_number = key.value.kind == KeyValue::Kind::whole_number;
    columns.push_back({key.label(), is_number ? 'r' : 'l',
                       [&key](const auto& p) { return shown_text(key, key.value.get(p.choice)); }});
  }
  return columns;
}

std::vector<Column> columns_of(const RankResult& result) {
  std::vector<Column> columns = plan_columns(result);
  columns.push_back({"time", 'r', [](const auto& p) { return to_text(p.time); }});
  columns.push_back({"samples/s", 'r', [](const auto& p) {
                       return fixed_text(p.choice.training.global_batch / (p.time / 1_s), 1);
                     }});
  if (!is_always_shown(result.objective))
    columns.push_back({result.objective_column.title, 'r', [&result](const auto& p) {
                         return number_text(result.objective_column, p.penalty);
                       }});
  columns.push_back(
      {"memory", 'r', [](const auto& p) {
         return std::string(p.memory_verdict == MemoryVerdict::lower_bound ? "≥ " : "") +
                to_text(p.memory_max) + (p.memory_verdict == MemoryVerdict::at_risk ? " ~" : "");
       }});
  columns.push_back({"what takes the time", 'l', what_takes_the_time});
  return columns;
}

std::string table(const RankResult& result, const Painter& paint) {
  std::string sides = "r";
  std::vector<TextRow> rows{{"  #"}};
  for (std::size_t i = 0; i < result.plans.size(); ++i) rows.push_back({std::to_string(i + 1)});
  for (const Column& column : columns_of(result)) {
    sides += column.side;
    rows.front().push_back(column.title);
    for (std::size_t i = 0; i < result.plans.size(); ++i)
      rows[i + 1].push_back(column.cell(result.plans[i]));
  }
  const std::string text = text_table(sides, rows);
  const std::size_t end = text.find('\n') + 1;
  return "\n" + paint(Tone::heading, text.substr(0, end)) + text.substr(end);
}

/// The values of searched keys that all plans of the table have.
std::string said_once(const RankResult& result) {
  std::string text;
  for (const SearchKey& searched : search_keys()) {
    const Key& key = *searched.key;
    if (result.space.of(key.name()).size() < 2 || !is_said_once(searched, result)) continue;
    text += (text.empty() ? "" : " · ") + key.label() + " " +
            shown_text(key, key.value.get(result.plans.front().choice));
  }
  if (text.empty()) return "";
  return "\n" + detail::paragraph((result.plans.size() > 1 ? "all of them: " : "with ") + text);
}

/// "tensor 1, 2, 4, 8 · pipeline 1 to 64 (7 values)"
std::string tried_text(const std::vector<TriedKey>& tried, bool are_searched) {
  constexpr std::size_t most_listed = 8;
  std::string text;
  for (const auto& [key, values] : tried) {
    if (values.empty() || (values.size() > 1) != are_searched) continue;
    text += (text.empty() ? "" : " · ") + key->label() + " ";
    if (values.size() > most_listed) {
      text += shown_text(*key, values.front()) + " to " + shown_text(*key, values.back()) + " (" +
              std::to_string(values.size()) + " values)";
      continue;
    }
    for (std::size_t i = 0; i < values.size(); ++i)
      text += (i > 0 ? ", " : "") + shown_text(*key, values[i]);
  }
  return text;
}

/// Whether a reader must be told that the key was held: it could have been searched, or is not what plans have by default.
bool is_worth_saying(const TriedKey& held, const Scenario& base) {
  const std::string name = held.key->name();
  if (!base.model.moe && (name == "expert" || name == "expert_tensor")) return false;
  const bool can_be_searched =
      std::any_of(search_keys().begin(), search_keys().end(),
                  [&](const SearchKey& searched) { return searched.key == held.key; });
  return can_be_searched || held.values.front() != held.key->value.get({});
}

/// What was searched, and what was held fixed.
std::string searched_text(const Scenario& base, const RankResult& result) {
  std::vector<TriedKey> tried = tried_keys(base, result.space);
  std::erase_if(tried, [&](const TriedKey& each) {
    return !each.is_searched() && !each.values.empty() && !is_worth_saying(each, base);
  });
  const std::string searched = tried_text(tried, true);
  return "\n" + detail::paragraph("searched: " + (searched.empty() ? "nothing" : searched)) +
         detail::paragraph("held fixed: " + tried_text(tried, false));
}

std::string counted(std::size_t count, const char* what) {
  return grouped_text(static_cast<double>(count)) + " " + what;
}

std::string counts(const RankResult& result) {
  return "\n" + detail::paragraph(
                    counted(result.considered, "plans considered: ") +
                    counted(result.rejected_shape, "cannot be laid out, ") +
                    counted(result.rejected_memory, "do not fit in memory with the margin, ") +
                    counted(result.simulated, "of the rest simulated"));
}

/// What the marks beside the memory of plans mean.
std::string memory_marks(const RankResult& result, const Painter& paint) {
  const auto has = [&](MemoryVerdict verdict) {
    return std::any_of(result.plans.begin(), result.plans.end(),
                       [verdict](const auto& plan) { return plan.memory_verdict == verdict; });
  };
  std::string text;
  if (has(MemoryVerdict::at_risk))
    text += marked("~", std::string("memory at risk: ") + detail::at_risk_meaning, Tone::doubtful,
                   paint);
  if (has(MemoryVerdict::lower_bound))
    text += marked("≥", "memory with ZeRO 3 is at least this: not all of its buffers are counted",
                   Tone::doubtful, paint);
  return text;
}

/// What the search of placements found, by plan.
std::string placements(const RankResult& result) {
  if (result.placements_searched == 0) return "";
  std::string text = "\n";
  for (std::size_t i = 0; i < result.plans.size(); ++i)
    if (!result.plans[i].placement_note.empty())
      text += detail::paragraph(std::to_string(i + 1) + ": " + result.plans[i].placement_note);
  return text;
}

std::string verdict(const RankResult& result, const Painter& paint) {
  const bool is_energy = result.objective == Objective::energy_per_token;  // the rest go by time
  if (result.gap > 0)
    return marked("~",
                  "the budget ended: a plan that was not simulated may take " +
                      (is_energy ? "less energy" : to_text(result.lower_bound) + " at best") +
                      ", a gap of " + percent_text(result.gap),
                  Tone::doubtful, paint);
  const std::string better = is_energy ? "takes less energy" : "is faster";
  const std::string what =
      result.table_is_proven
          ? "the table is proven: no other plan " + better + " than one in it"
          : "plan 1 is proven: no other " + better + ". The places below it are not";
  if (result.placements_searched > 0)
    return marked("~",
                  "with ranks in order " + what +
                      " (gap 0.0 %); placements were searched for the plans of the table only",
                  Tone::doubtful, paint);
  return marked("✓", what + " (gap 0.0 %)", Tone::good, paint);
}

std::string why_none(const RankResult& result, const Painter& paint) {
  if (!result.nearest) return marked("✗", "no plan was considered", Tone::bad, paint);
  const RejectedPlan& nearest = *result.nearest;
  std::string text = "no plan can be recommended. " +
                     std::string(nearest.memory ? "Nearest to fitting is " : "The first is ") +
                     detail::plan_text(nearest.choice.training, nearest.choice.parallel) + ": ";
  if (nearest.memory) text += text_of(*nearest.memory);
  for (const PlanRejection& rejection : nearest.shape) text += rejection.message + ". ";
  return marked("✗", text, Tone::bad, paint);
}

}  // namespace

std::string rank_text(const Scenario& base, const RankResult& result, Colour colour) {
  const Painter paint(colour);
  const std::string head =
      paint(Tone::heading, base.name) + "\n\n" +
      detail::paragraph(base.model.name + " on " +
                        counted(static_cast<std::size_t>(result.space.gpus), "GPUs of ") +
                        base.platform.name + " with " + base.software.name);
  if (result.plans.empty())
    return head + counts(result) + searched_text(base, result) + why_none(result, paint);
  return head + table(result, paint) + said_once(result) + placements(result) + counts(result) +
         searched_text(base, result) + memory_marks(result, paint) + verdict(result, paint);
}

}  // namespace windtunnel
