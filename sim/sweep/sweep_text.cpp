#include "sweep/sweep_text.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "core/count_text.hpp"
#include "core/json_value.hpp"
#include "core/text_list.hpp"
#include "core/work_note.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"
#include "sweep/row.hpp"

namespace windtunnel {
namespace {

constexpr std::size_t most_enumerated = 5;  ///< lists, and points or values of one

/// "0, 1 and 2", "0, 1, 2, 3, 4 and 91 more"
std::string enumerated(const std::vector<std::string>& words) {
  const std::size_t shown = words.size() > most_enumerated + 1 ? most_enumerated : words.size() - 1;
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + words[i];
  const std::size_t rest = words.size() - shown;
  return text + (shown == 0 ? "" : " and ") +
         (rest == 1 ? words.back() : std::to_string(rest) + " more");
}

std::string value_at(const PointValues& values, const std::string& pointer) {
  const auto found =
      std::ranges::find_if(values, [&](const auto& value) { return value.first == pointer; });
  if (found == values.end()) return "as in the file";
  const JsonValue& value = found->second;
  return value.is_array() || value.is_object() ? canonical_text(value) : text_for_message(value);
}

/// "/parallel/virtual_pipeline (1, 2)": what the points set differently.
std::string differences(const std::vector<std::size_t>& same, const SweepPoints& points) {
  std::vector<std::string> columns;
  for (const std::string& column : points.columns()) {
    std::vector<std::string> values;
    for (const std::size_t point : same) {
      std::string value = value_at(points.values(point), column);
      if (std::ranges::find(values, value) == values.end()) values.push_back(std::move(value));
    }
    if (values.size() > 1) columns.push_back(column + " (" + enumerated(values) + ")");
  }
  return columns.empty() ? "how their values are written" : enumerated(columns);
}

/// The best of the first `count` points.
std::vector<JsonValue> best_of(const RankedRows& ranked, std::size_t count) {
  constexpr std::size_t most_listed = 5;
  std::vector<JsonValue> best;
  for (std::size_t i = 0; i < std::min(most_listed, count); ++i)
    best.push_back(ranked.rows[i]->content);
  return best;
}

/// Counts one more of `text`; the commonest stay first.
void count_in(std::vector<std::pair<std::string, std::size_t>>& counts, const std::string& text) {
  auto known = std::ranges::find_if(counts, [&](const auto& each) { return each.first == text; });
  if (known == counts.end()) known = counts.insert(known, {text, 0});
  ++known->second;
  std::ranges::stable_sort(counts,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
}

/// The first line of each error, those of most points first.
std::string errors_text(const RankedRows& ranked) {
  constexpr std::size_t most_shown = 3;
  std::vector<std::pair<std::string, std::size_t>> errors;
  for (std::size_t i = ranked.ok(); i < ranked.rows.size(); ++i) {
    std::string error = text_at(ranked.rows[i]->content, "error");
    count_in(errors, first_line_of(error));
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(most_shown, errors.size()); ++i)
    text += detail::marked("✗", count_text(errors[i].second, "point") + ": " + errors[i].first,
                           detail::Tone::bad, detail::Painter(Colour::never));
  return errors.size() > most_shown
             ? text +
                   detail::paragraph("and " + count_text(errors.size() - most_shown, "other error"))
             : text;
}

std::string between_text(std::pair<double, double> ends) {
  constexpr int digits = 3;
  return fixed_text(ends.first, digits) + " to " + fixed_text(ends.second, digits);
}

/// "1.213x (1.087 to 1.354)", with a "~" before it where it is not known which of the two is faster.
std::string speedup_text(const JsonValue& row) {
  const auto interval = interval_of(row, speedup_interval_key);
  const std::string verdict = text_at(row, speedup_verdict_key);
  const bool is_known = verdict.empty() || verdict == name_of(OrderVerdict::faster) ||
                        verdict == name_of(OrderVerdict::slower);
  return (is_known ? "" : "~ ") + fixed_text(figure(row, speedup_key), 3) + "x" +
         (interval ? " (" + between_text(*interval) + ")" : "");
}

/// The items of a plan's text: "tensor 4 × pipeline 2 × data 64", "1f1b", …
std::vector<std::string> items_of(const std::string& plan) {
  const std::string separator = ", ";
  std::vector<std::string> items;
  for (std::size_t at = 0; at < plan.size();) {
    const std::size_t end = std::min(plan.find(separator, at), plan.size());
    items.push_back(plan.substr(at, end - at));
    at = end + separator.size();
  }
  return items;
}

/// The plans of the points, and once what several have in common:
///   plan of point 1: tensor 4 × pipeline 2 × data 64, 12 microbatches of 2 samples
///   plan of point 0: tensor 4 × pipeline 2 × data 32, 24 microbatches of 2 samples
///   all plans: 1f1b, fp16, ZeRO-3
std::string plans_text(const std::vector<JsonValue>& rows) {
  std::vector<std::vector<std::string>> plans;
  for (const JsonValue& row : rows) plans.push_back(items_of(text_at(row, "plan")));
  std::vector<std::string> common;
  if (plans.size() > 1)
    std::ranges::copy_if(plans.front(), std::back_inserter(common), [&](const auto& item) {
      return std::ranges::all_of(plans, [&](const std::vector<std::string>& plan) {
        return std::ranges::find(plan, item) != plan.end();
      });
    });
  std::string text;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    std::erase_if(plans[i], [&](const std::string& item) {
      return std::ranges::find(common, item) != common.end();
    });
    if (!plans[i].empty())
      text += detail::paragraph("plan of point " + text_at(rows[i], "point") + ": " +
                                joined(plans[i], ", "));
  }
  return common.empty() ? text : text + detail::paragraph("all plans: " + joined(common, ", "));
}

/// Text of a file, fit for a terminal: no quotes around it, and those in it not escaped.
std::string cell_text(const std::string& text) {
  std::string cell = text_for_message(JsonValue(text));
  cell = cell.substr(1, cell.size() - 2);
  for (std::size_t at = 0; (at = cell.find("\\\"", at)) != std::string::npos; ++at)
    cell.erase(at, 1);
  return cell;
}

bool is_at_risk(const JsonValue& row) { return std::string_view(doubt_of_fit(row)) == "at risk"; }

/// The meaning of the mark, and the rows that have it: a narrow table has no room for the mark.
std::string at_risk_text(const std::vector<JsonValue>& rows) {
  std::vector<std::string> points;
  for (const JsonValue& row : rows)
    if (is_at_risk(row)) points.push_back(text_at(row, "point"));
  if (points.empty()) return "";
  return detail::marked("~",
                        "memory at risk of point" + std::string(points.size() == 1 ? " " : "s ") +
                            enumerated(points) + ": " + detail::at_risk_meaning,
                        detail::Tone::doubtful, detail::Painter(Colour::never));
}

std::string best_text(const Sweep& sweep, const std::vector<JsonValue>& best) {
  const std::vector<std::string>& axes = sweep.points().columns();
  // Axes on which these rows differ, of one row all; and "tensor 8 · nic_rate 400 Gbps" of the others.
  std::vector<std::string> columns, shared;
  for (const std::string& column : axes) {
    const std::string first = text_at(best.front(), column);
    const bool differs = best.size() < 2 || std::ranges::any_of(best, [&](const JsonValue& row) {
                           return text_at(row, column) != first;
                         });
    if (differs)
      columns.push_back(column);
    else
      shared.push_back(short_name(column, axes) + " " + cell_text(first));
  }
  const bool has_labels = sweep.points().has_labels();
  const bool has_intervals = std::ranges::any_of(
      best, [](const JsonValue& row) { return interval_of(row, time_interval_key).has_value(); });
  std::vector<TextRow> lines{{"point"}};
  std::string shown = has_labels ? "rw" : "r";
  if (has_labels) lines[0].emplace_back("name");
  if (!has_labels)
    for (const std::string& column : columns) {
      lines[0].push_back(short_name(column, axes));
      shown += "r?";
    }
  lines[0].insert(lines[0].end(), {"GPUs", "s/iteration"});
  if (has_intervals) lines[0].emplace_back("90 % interval");
  lines[0].insert(lines[0].end(), {"tokens/s", "MFU, %", "memory, GiB"});
  shown += has_intervals ? "r??rr??rr????r???" : "r??rrr????r???";
  std::vector<std::string> figures = sweep.asked_figures();
  const bool has_plans = std::erase(figures, "plan") > 0;
  for (const std::string& figure : figures) {
    lines[0].push_back(figure);
    // What the points are compared by is always shown, and the other figures asked for while there is room at all.
    const bool is_compared = figure == speedup_key || figure == name_of(sweep.choices().objective);
    shown += is_compared ? "r" : "r?";
  }
  for (const JsonValue& row : best) {
    TextRow& line = lines.emplace_back(TextRow{text_at(row, "point")});
    if (has_labels) line.push_back(cell_text(point_name(row, axes)));
    if (!has_labels)
      for (const std::string& column : columns) line.push_back(cell_text(text_at(row, column)));
    line.insert(line.end(), {text_at(row, "gpus"), fixed_text(figure(row, "iteration_time_s"), 3)});
    if (has_intervals) {
      const auto interval = interval_of(row, time_interval_key);
      line.push_back(interval ? between_text(*interval) : "");
    }
    line.insert(line.end(),
                {grouped_text(figure(row, "tokens_per_s")), fixed_text(100 * figure(row, "mfu"), 1),
                 memory_mark(row) + fixed_text(Bytes{figure(row, "memory_max_bytes")} / 1_GiB, 1) +
                     (is_at_risk(row) ? " ~" : "")});
    for (const std::string& asked : figures) {
      const std::optional<double> amount = number_of(row.find(asked));
      constexpr int digits = 4;
      line.push_back(!amount                ? text_at(row, asked)
                     : asked == "cost"      ? grouped_text(*amount)
                     : asked == speedup_key ? speedup_text(row)
                                            : significant_text(*amount, digits));
    }
  }
  return text_table(shown, lines, has_labels ? "" : joined(shared, " · ")) + at_risk_text(best) +
         (has_plans ? plans_text(best) : "");
}

/// A point as it would be simulated.
struct PlannedPoint {
  std::string id;
  std::string obstacle;                ///< why it cannot be simulated; empty: it can
  std::optional<std::size_t> same_as;  ///< the first point with the same scenario
};

std::vector<PlannedPoint> planned_points(const Sweep& sweep) {
  std::vector<PlannedPoint> planned;
  std::map<std::string, std::size_t> first_of;
  for (std::size_t point = 0; point < sweep.points().size(); ++point) {
    count_done(point);
    PlannedPoint& each = planned.emplace_back();
    try {
      each.id = sweep.scenario(point).hash;
      const auto [first, is_new] = first_of.try_emplace(each.id, point);
      if (!is_new) each.same_as = first->second;
    } catch (const InputError& error) {
      each.id = id_of_unreadable(sweep, point);
      each.obstacle = error.problems().front().message;
    }
  }
  return planned;
}

template <class Condition>
std::string number_of_those(const std::vector<PlannedPoint>& planned, Condition condition) {
  return std::to_string(std::ranges::count_if(planned, condition));
}

}  // namespace

SameScenarios same_scenarios(const PartRows& rows) {
  std::map<std::string, std::vector<std::size_t>> by_id;
  for (const auto& [point, row] : rows.by_point)
    if (const JsonValue* id = row.content.find("id"); id != nullptr && id->is_string())
      by_id[id->string()].push_back(point);
  SameScenarios same;
  for (auto& [id, points] : by_id)
    if (points.size() > 1) same.push_back(std::move(points));
  std::ranges::sort(same);
  return same;
}

std::string same_text(const Sweep& sweep, const PartRows& rows) {
  const SameScenarios same = same_scenarios(rows);
  if (same.empty()) return {};
  std::size_t different = rows.by_point.size();
  for (const auto& list : same) different -= list.size() - 1;
  std::string text =
      std::to_string(rows.by_point.size()) + " points are " +
      (different == 1 ? "one scenario" : std::to_string(different) + " different scenarios");
  for (std::size_t i = 0; i < std::min(most_enumerated, same.size()); ++i) {
    std::vector<std::string> numbers;
    for (const std::size_t point : same[i]) numbers.push_back(std::to_string(point));
    text += "\n  points " + enumerated(numbers) + " differ in " +
            differences(same[i], sweep.points()) + ", which changes nothing";
  }
  if (same.size() > most_enumerated)
    text += "\n  and so on: " + std::to_string(same.size() - most_enumerated) + " more";
  return text;
}

RankedRows ranked_rows(const Sweep& sweep, const PartRows& rows) {
  using Rank = std::tuple<bool, bool, double>;
  RankedRows ranked;
  std::vector<std::pair<Rank, const Row*>> sorted;
  for (const auto& [point, row] : rows.by_point) {
    const bool is_large = row.ok && !fits(row.content);
    ++(!row.ok ? ranked.failed : is_large ? ranked.too_large : ranked.fitting);
    sorted.push_back({{!row.ok, is_large, penalty_of(sweep, row.content)}, &row});
  }
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [rank, row] : sorted) ranked.rows.push_back(row);
  return ranked;
}

const char* order_words(Objective objective) {
  constexpr std::array words{"Shortest iteration", "Most tokens per second",
                             "Least cost of a token", "Least energy for a token", "Fewest days"};
  static_assert(words.size() == enumerators<Objective>().size());
  return words.at(static_cast<std::size_t>(objective));
}

std::string baseline_text(const Sweep& sweep, const PartRows& rows) {
  const std::optional<std::size_t> baseline = sweep.points().baseline();
  if (!baseline) return {};
  const std::string point = "point " + std::to_string(*baseline);
  const auto found = rows.by_point.find(*baseline);
  if (found == rows.by_point.end()) return "no speed-ups yet: the baseline, " + point + ", is left";
  const std::string name = point_name(found->second.content, sweep.points().columns());
  if (!found->second.ok) return "no speed-ups: the baseline, " + point + ", could not be simulated";
  const bool has_intervals = std::ranges::any_of(rows.by_point, [](const auto& each) {
    return interval_of(each.second.content, speedup_interval_key).has_value();
  });
  return "speedup: tokens/s over those of " + point + ", " + name +
         (has_intervals ? "; in brackets its 90 % interval, ~ where it is not known which is faster"
                        : "");
}

std::string sweep_text(const Sweep& sweep, const PartRows& rows,
                       const std::filesystem::path& directory) {
  const RankedRows ranked = ranked_rows(sweep, rows);
  const std::size_t total = sweep.points().size();
  std::string text = sweep.name() + ": " + count_text(total, "point") + ", " +
                     std::to_string(ranked.ok()) + " simulated";
  if (ranked.too_large > 0)
    text += " (" + std::to_string(ranked.too_large) + " of them do not fit in memory)";
  if (ranked.failed > 0) {
    std::vector<std::pair<std::string, std::size_t>> reasons;
    for (std::size_t i = ranked.ok(); i < ranked.rows.size(); ++i)
      count_in(reasons, text_at(ranked.rows[i]->content, "failure"));
    text +=
        ", " + std::to_string(ranked.failed) + " failed (" +
        listed(reasons,
               [](const auto& each) { return std::to_string(each.second) + " " + each.first; }) +
        ")";
  }
  const std::size_t left = total - rows.by_point.size();
  if (left > 0) text += ", " + std::to_string(left) + " left to do";
  text += "\n" + errors_text(ranked);
  if (const std::string same = same_text(sweep, rows); !same.empty())
    text += "warning: " + same + "\n";
  if (const std::string words = baseline_text(sweep, rows); !words.empty()) text += words + "\n";
  const std::size_t shown = ranked.fitting > 0 ? ranked.fitting : ranked.ok();
  if (shown > 0)
    text += "\n" + std::string(order_words(sweep.choices().objective)) +
            (ranked.fitting > 0 ? "" : ", with enough memory: no point fits") + "\n" +
            best_text(sweep, best_of(ranked, shown));
  std::string front;
  for (const FrontPoint& each : front_of(rows, sweep.points().columns()))
    if (each.priced.on_front)
      front += "  point " + std::to_string(each.point) + ": " + each.priced.label + ": " +
               fixed_text(each.priced.days, 1) + " days, " + grouped_text(each.priced.cost) + "\n";
  if (!front.empty())
    text += "\nDays against money: no other point takes fewer days and less money\n" + front;
  const std::filesystem::path chart = directory / "sweep.svg";
  return text + "\nAll of it: " + (directory / "results.csv").string() +
         (exists(chart) ? "; chart: " + chart.string() : "") + "\n";
}

std::string sweep_json(const Sweep& sweep, const PartRows& rows,
                       const std::filesystem::path& directory) {
  const RankedRows ranked = ranked_rows(sweep, rows);
  const std::size_t total = sweep.points().size();
  const auto numbers = [](const std::vector<std::size_t>& points) {
    return array_of(points, json_of<std::size_t>);
  };
  const std::vector<FrontPoint> priced = front_of(rows, sweep.points().columns());
  std::vector<std::size_t> front;
  for (const FrontPoint& each : priced)
    if (each.priced.on_front) front.push_back(each.point);
  return pretty_text(object_of({{"schema", "windtunnel/sweep-v1"},
                                {"name", sweep.name()},
                                {"sweep_hash", sweep.hash()},
                                {"points", total},
                                {"ok", ranked.ok()},
                                {"failed", ranked.failed},
                                {"does_not_fit", ranked.too_large},
                                {"left", total - rows.by_point.size()},
                                {"same_scenarios", array_of(same_scenarios(rows), numbers)},
                                {"baseline", sweep.points().baseline()},
                                {"results", (directory / "results.jsonl").string()},
                                {"best", JsonValue(best_of(ranked, ranked.fitting))},
                                {"front", only_if(!priced.empty(), numbers(front))}})) +
         "\n";
}

std::string origins_text(const SweepPoints& points) {
  if (points.num_combinations() == 0) return "all listed";
  return count_text(points.num_combinations(), "combination") + ", " +
         std::to_string(points.num_excluded()) + " excluded, " +
         std::to_string(points.num_included()) + " included";
}

std::string points_text(const Sweep& sweep) {
  const SweepPoints& points = sweep.points();
  const std::vector<PlannedPoint> planned = planned_points(sweep);
  std::string lines;
  for (std::size_t point = 0; point < points.size(); ++point) {
    const PlannedPoint& each = planned[point];
    lines += std::to_string(point);
    if (const std::string label = points.label(point); !label.empty())
      lines += "  " + text_for_message(JsonValue(label));
    for (const auto& [pointer, value] : points.values(point))
      lines += "  " + pointer + "=" + (value.is_string() ? value.string() : canonical_text(value));
    if (!each.obstacle.empty()) lines += "  ✗ " + each.obstacle;
    if (each.same_as) lines += "  = point " + std::to_string(*each.same_as);
    lines += "\n";
  }
  const std::string repeated =
      number_of_those(planned, [](const PlannedPoint& each) { return each.same_as.has_value(); });
  return sweep.name() + ": " + count_text(points.size(), "point") + ": " + origins_text(points) +
         "; " + number_of_those(planned, [](const auto& each) { return !each.obstacle.empty(); }) +
         " cannot be simulated" +
         (repeated == "0" ? "" : ", " + repeated + " the same as another") + "\n" + lines;
}

std::string points_json(const Sweep& sweep) {
  const SweepPoints& points = sweep.points();
  const std::vector<PlannedPoint> planned = planned_points(sweep);
  JsonValue::Array list;
  for (const PlannedPoint& each : planned) {
    const std::string label = points.label(list.size());
    list.push_back(object_of(
        {{"point", list.size()}, {"id", each.id}, {"label", only_if(!label.empty(), label)}}));
    for (const auto& [pointer, value] : points.values(list.size() - 1))
      list.back().set(pointer, value);
    add_members(list.back(), {{"error", only_if(!each.obstacle.empty(), each.obstacle)},
                              {"same_as", each.same_as}});
  }
  return pretty_text(object_of({{"schema", "windtunnel/sweep-points-v1"},
                                {"name", sweep.name()},
                                {"combinations", points.num_combinations()},
                                {"excluded", points.num_excluded()},
                                {"included", points.num_included()},
                                {"points", JsonValue(std::move(list))}})) +
         "\n";
}

}  // namespace windtunnel
