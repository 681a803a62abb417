#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/count_text.hpp"
#include "core/json_build.hpp"
#include "core/mapped.hpp"
#include "core/normal.hpp"
#include "core/text_list.hpp"
#include "job/job_result.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/ordering.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"

namespace windtunnel {
namespace {

bool counts(const JobPoint& point, Expense expense) {
  return point.result && point.result->fits() && (expense == Expense::days || point.result->cost);
}
bool counts(const JobPoint& point) { return counts(point, Expense::cost); }

const JobFigure& expense_of(const JobPoint& point, Expense expense) {
  return expense == Expense::days ? point.result->days : *point.result->cost;
}

/// Quantiles of a normal distribution: the 90th over the 95th. Ends of intervals are the latter.
constexpr double of_one_side = normal_90th / normal_95th;

/// Distance that two spreads reach towards each other in 90 of 100 cases, in logarithms, as if they were independent and normal.
double reach(const Spread& less, const Spread& more) {
  return of_one_side *
         std::hypot(std::log(less.high / less.median), std::log(more.median / more.low));
}

/// Distance between the medians of two points, and the distance below which their order is not known; both in logarithms.
struct Gap {
  double distance = 0, error = 0;
};
Gap gap_between(const JobPoint& one, const JobPoint& other, Expense expense) {
  const JobFigure* less = &expense_of(one, expense);
  const JobFigure* more = &expense_of(other, expense);
  const std::optional<double> of_pair =
      one.judged && other.judged && one.pairs
          ? least_known_gain(*one.judged, *other.judged, *one.pairs)
          : std::nullopt;
  if (more->median < less->median) std::swap(less, more);
  if (less->median <= 0) return {more->median > 0 ? 1.0 : 0.0, 0};
  return {std::log(more->median / less->median),
          std::hypot(of_pair ? *of_pair : reach(less->of_step, more->of_step),
                     reach(less->of_run, more->of_run))};
}

/// Less of it, or no more, in 90 % of cases.
bool is_surely_less(const JobPoint& one, const JobPoint& other, Expense expense) {
  return expense_of(one, expense).median < expense_of(other, expense).median &&
         is_order_known(one, other, expense);
}
bool is_surely_no_more(const JobPoint& one, const JobPoint& other, Expense expense) {
  const Gap gap = gap_between(one, other, expense);
  return expense_of(one, expense).median <= expense_of(other, expense).median &&
         gap.error <= gap.distance;
}

/// True if errors leave no doubt that a point is on the front, or that it is not.
bool front_is_sure(const JobPoint& point, const std::vector<JobPoint>& points) {
  const auto is_less_somewhere = [](const JobPoint& one, const JobPoint& other) {
    return is_surely_less(one, other, Expense::days) || is_surely_less(one, other, Expense::cost);
  };
  const auto is_nowhere_more = [](const JobPoint& one, const JobPoint& other) {
    return is_surely_no_more(one, other, Expense::days) &&
           is_surely_no_more(one, other, Expense::cost);
  };
  if (point.on_front)
    return std::ranges::all_of(points, [&](const JobPoint& other) {
      return &other == &point || !counts(other) || is_less_somewhere(point, other) ||
             is_nowhere_more(point, other);
    });
  return std::ranges::any_of(points, [&](const JobPoint& other) {
    return counts(other) && is_nowhere_more(other, point) && is_less_somewhere(other, point);
  });
}

/// The point that takes least, and those that may take less as far as is known.
struct Least {
  std::size_t point = 0;
  std::vector<std::size_t> rivals;  ///< by number
};
std::optional<Least> least_of(const std::vector<JobPoint>& points, Expense expense) {
  std::optional<Least> least;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (counts(points[i], expense) &&
        (!least ||
         expense_of(points[i], expense).median < expense_of(points[least->point], expense).median))
      least = Least{i, {}};
  if (!least) return least;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (i != least->point && counts(points[i], expense) &&
        !is_order_known(points[least->point], points[i], expense))
      least->rivals.push_back(i);
  return least;
}

/// "Cheapest: A", or which points may be cheaper as far as is known, by how much they differ and how well that is known. Says how many
/// points were compared, if not all.
std::string advice(const std::vector<JobPoint>& points, Expense expense) {
  const std::optional<Least> least = least_of(points, expense);
  const JobPoint& best = points[least->point];
  const auto compared =
      std::ranges::count_if(points, [&](const JobPoint& point) { return counts(point, expense); });
  std::string text = expense == Expense::days ? "Fastest" : "Cheapest";
  if (compared < std::ssize(points))
    text += " of " + std::to_string(compared) + " of " + count_text(points.size(), "point");
  text += ": ";
  if (compared < 2) return text + "nothing to compare " + best.values + " with.";
  if (least->rivals.empty()) return text + best.values + "; no other comes within the errors.";
  text += "not known. Predicted: " + best.values + "; within the model's error of it: ";
  constexpr std::size_t most_named = 3;
  for (std::size_t i = 0; i < std::min(least->rivals.size(), most_named); ++i) {
    const JobPoint& rival = points[least->rivals[i]];
    const Gap gap = gap_between(best, rival, expense);
    text += (i == 0 ? "" : ", ") + rival.values + " (" + percent_text(std::expm1(gap.distance)) +
            " more, error up to " + percent_text(std::expm1(gap.error)) + ")";
  }
  if (least->rivals.size() > most_named)
    text += " and " + std::to_string(least->rivals.size() - most_named) + " more";
  return text + ".";
}

/// The reason why a point is not on the front, or that it is.
std::string verdict(const JobPoint& point) {
  if (!point.result) return "not simulated";
  if (!point.result->fits()) return "does not fit in memory";
  std::string front = point.on_front ? "on the front" : "";
  if (!point.front_is_sure)
    front = point.on_front ? "on the front, uncertain" : "off the front, uncertain";
  if (const MemoryVerdict memory = point.result->memory_verdict; memory != MemoryVerdict::fits)
    front += std::string(front.empty() ? "" : "; ") +
             (memory == MemoryVerdict::at_risk ? "memory at risk" : "not known to fit in memory");
  return front;
}

/// The unit for the lengths of all points.
const LengthUnit& unit_of(const std::vector<JobPoint>& points) {
  double most = 0;
  for (const JobPoint& point : points)
    if (point.result) most = std::max(most, point.result->days.median);
  return length_unit(most > 0 ? most : 1);
}

/// Sentences below the table, which has no room for them: why points were not simulated, and the plans that were chosen.
std::vector<document::Part> notes_of(const std::vector<JobPoint>& points) {
  const LengthUnit& unit = unit_of(points);
  std::vector<document::Part> parts;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::string number = "point " + std::to_string(i + 1);
    if (!points[i].result)
      parts.emplace_back(
          document::Verdict{"✗", number + " not simulated: " + first_line_of(points[i].problem)});
    else if (points[i].result->job.block.plan == JobPlan::best)
      parts.emplace_back("plan of " + number + ": " + points[i].result->plan);
  }
  std::vector<std::string> waits;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (points[i].result && points[i].result->enough_spares)
      waits.push_back(std::to_string(i + 1) + " in " +
                      percent_text(points[i].result->share_without_nodes()) + " of its time, " +
                      unit.text(points[i].result->enough_spares->median_days) + " " + unit.name +
                      " with " + count_text(points[i].result->enough_spares->nodes, "spare node"));
  if (!waits.empty())
    parts.emplace_back(document::Verdict{
        "!",
        "points wait for nodes to be repaired (/job/restart/spare_nodes), mean of all draws, where "
        "goodput is the median: " +
            joined(waits, "; ")});
  return parts;
}

/// The currency of all prices; empty where points have different ones, or none.
std::string shared_currency(const std::vector<JobPoint>& points) {
  std::string shared;
  for (const JobPoint& point : points) {
    if (!point.result || !point.result->cost) continue;
    const std::string& its = point.result->job.block.price->currency;
    if (!shared.empty() && shared != its) return "";
    shared = its;
  }
  return shared;
}

std::vector<PricedPoint> priced(const std::vector<JobPoint>& points, double per_day = 1) {
  std::vector<PricedPoint> list;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (const JobPoint& point = points[i]; counts(point)) {
      const JobFigure &days = point.result->days, &cost = *point.result->cost;
      list.push_back({std::to_string(i + 1), days.median * per_day, cost.median, point.on_front,
                      Chart::Error{days.low * per_day, cost.low, days.high * per_day, cost.high},
                      ", " + point.result->job.block.price->currency});
    }
  return list;
}

JsonValue point_json(const JobPoint& point) {
  if (!point.result)
    return object_of({{"values", point.values}, {"ok", false}, {"error", point.problem}});
  const JobResult& result = *point.result;
  return object_of({{"values", point.values},
                    {"ok", true},
                    {"fits", result.fits()},
                    {"memory_verdict", name_of(result.memory_verdict)},
                    {"on_front", point.on_front},
                    {"front_is_sure", point.front_is_sure},
                    {"plan", result.plan},
                    {"gpus", result.job.gpus},
                    {"step_s", result.job.step_time},
                    {"step_interval_s", result.step_interval},
                    {"days", figure_json(result.days, result)},
                    {"goodput", spread_json(result.goodput)},
                    {"failures", spread_json(result.failures)},
                    {"cost", figure_json(result.cost, result)},
                    {"energy_mwh", figure_json(result.energy_mwh, result)},
                    {"warnings", array_of(result.warnings)}});
}

/// {"point": 0, "about_the_same": [1, 2]}, numbers from 0
std::optional<JsonValue> least_json(const std::vector<JobPoint>& points, Expense expense) {
  const std::optional<Least> least = least_of(points, expense);
  if (!least) return std::nullopt;
  return object_of(
      {{"point", least->point}, {"about_the_same", array_of(least->rivals, [](std::size_t each) {
                                   return JsonValue(static_cast<std::int64_t>(each));
                                 })}});
}

/// Warnings of points, each once: "points 1, 2: the prediction interval is …".
std::vector<document::Part> warnings_of(const std::vector<JobPoint>& points) {
  std::vector<std::pair<std::string, std::string>> said;  // of which point, and what
  for (std::size_t i = 0; i < points.size(); ++i)
    if (points[i].result)
      for (const std::string& each : points[i].result->warnings)
        said.emplace_back(std::to_string(i + 1), each);
  std::vector<document::Part> parts;
  for (const auto& [of_points, warning] : detail::said_once(said))
    parts.emplace_back(
        document::Verdict{"!", (of_points.find(',') == std::string::npos ? "point " : "points ") +
                                   of_points + ": " + warning});
  return parts;
}

}  // namespace

bool is_order_known(const JobPoint& one, const JobPoint& other, Expense expense) {
  const Gap gap = gap_between(one, other, expense);
  return gap.error < gap.distance;
}

void mark_front(std::vector<JobPoint>& points) {
  std::vector<PricedPoint> marked = priced(points);
  mark_pareto_front(marked);
  auto next = marked.begin();
  for (JobPoint& point : points) point.on_front = counts(point) && (next++)->on_front;
  for (JobPoint& point : points)
    point.front_is_sure = !counts(point) || front_is_sure(point, points);
}

document::Document job_points_document(const std::string& name,
                                       const std::vector<JobPoint>& points) {
  const JsonValue data = object_of({{"schema", "windtunnel/job-points-v1"},
                                    {"version", WINDTUNNEL_VERSION},
                                    {"fastest", least_json(points, Expense::days)},
                                    {"cheapest", least_json(points, Expense::cost)},
                                    {"points", array_of(points, point_json)}});
  const auto has = [&](std::optional<JobFigure> JobResult::*expense) {
    return std::ranges::any_of(points, [&](const JobPoint& each) {
      return each.result && ((*each.result).*expense).has_value();
    });
  };
  const bool has_cost = has(&JobResult::cost), has_energy = has(&JobResult::energy_mwh);
  document::Table table{
      std::string("rwr?") + (has_cost ? "r" : "") + "rr?r??" + (has_energy ? "r???" : "") + "w",
      {{"#", "point", "GPUs"}}};
  const std::string currency = shared_currency(points);
  if (has_cost) table.rows[0].emplace_back("cost" + (currency.empty() ? "" : ", " + currency));
  const LengthUnit& unit = unit_of(points);
  for (const char* const heading : {unit.name, "90 % of runs", "goodput"})
    table.rows[0].emplace_back(heading);
  if (has_energy) table.rows[0].emplace_back("MWh");
  table.rows[0].emplace_back("");
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto at = [&](const char* key, std::string (*format)(double)) {
      return job_figure(data, "/points/" + std::to_string(i) + "/" + key, format);
    };
    document::TableRow row{std::to_string(i + 1), points[i].values, at("gpus", grouped_text)};
    if (has_cost)
      row.emplace_back(at("cost/median", amount_text) +
                       (currency.empty() && points[i].result && points[i].result->cost
                            ? " " + points[i].result->job.block.price->currency
                            : ""));
    row.emplace_back(at("days/median", unit.text));
    row.emplace_back(
        points[i].result ? at("days/p5", unit.text) + " to " + at("days/p95", unit.text) : "");
    row.emplace_back(at("goodput/median", percent_text));
    if (has_energy) row.emplace_back(at("energy_mwh/median", amount_text));
    row.emplace_back(verdict(points[i]));
    table.rows.push_back(std::move(row));
  }
  document::Section every{"points", "Points", "Every point", {std::move(table)}};
  if (const auto with_price = priced(points, unit.per_day); !with_price.empty()) {
    Chart chart = days_money_chart(with_price);
    chart.x.title = unit.name;
    every.parts = {
        "On the front: no other point that fits takes fewer days and less money. Cost goes with "
        "days: its interval is as wide.",
        std::move(chart), every.parts.front(), advice(points, Expense::days),
        advice(points, Expense::cost)};
  }
  for (const auto& more : {notes_of(points), warnings_of(points)})
    every.parts.insert(every.parts.end(), more.begin(), more.end());
  return {data, "job", name, {"days against money"}, "", {}, {every}, "windtunnel job --json", {}};
}

std::string job_points_csv(const std::vector<JobPoint>& points) {
  constexpr const char* columns[][2] = {{"point", "/values"},
                                        {"ok", "/ok"},
                                        {"fits", "/fits"},
                                        {"on_front", "/on_front"},
                                        {"gpus", "/gpus"},
                                        {"days", "/days/median"},
                                        {"goodput", "/goodput/median"},
                                        {"failures", "/failures/median"},
                                        {"cost", "/cost/median"},
                                        {"energy_mwh", "/energy_mwh/median"},
                                        {"front_is_sure", "/front_is_sure"},
                                        {"days_p5", "/days/p5"},
                                        {"days_p95", "/days/p95"},
                                        {"cost_p5", "/cost/p5"},
                                        {"cost_p95", "/cost/p95"},
                                        {"memory_verdict", "/memory_verdict"}};
  std::string text =
      csv_line(mapped<std::string>(columns, [](const auto& column) { return column[0]; }));
  for (const JobPoint& point : points) {
    const JsonValue row = point_json(point);
    text += csv_line(mapped(columns, [&](const auto& column) {
      const JsonValue* value = find_at(row, column[1]);
      return value == nullptr ? "" : value->is_string() ? value->string() : canonical_text(*value);
    }));
  }
  return text;
}

}  // namespace windtunnel
