#include "validate/validation_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/count_text.hpp"
#include "core/json_build.hpp"
#include "core/text_list.hpp"
#include "report/html_text.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_view.hpp"
#include "report/terminal_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr std::array memory_kinds{MemoryKind::allocated, MemoryKind::reserved,
                                  MemoryKind::nvidia_smi};

/// Rows with an error above this carry a star.
constexpr double outlier_error = 0.10;

std::string rows_text(const std::vector<ScoredRow>& comparisons) {
  std::vector<TextRow> rows{{"point", "measured", "predicted", "error"}};
  bool outliers = false;
  for (const ScoredRow& row : comparisons) {
    const bool outlier = std::abs(row.error()) > outlier_error;
    outliers = outliers || outlier;
    rows.push_back({row.id, to_text(row.measured), to_text(row.predicted),
                    signed_percent_text(row.error()), outlier ? "*" : ""});
  }
  return "\n" + text_table("wrrrl", rows) +
         (outliers ? "  * off by more than " + percent_text(outlier_error) + "\n" : "");
}

/// "97.2 %"; a dash of nothing.
std::string share_text(double part, std::size_t whole) {
  return whole == 0 ? "-" : percent_text(part / static_cast<double>(whole));
}

std::string score_text(const ValidatedSet& set) {
  const std::vector<ScoredRow>& comparisons = set.comparisons;
  const Score all = score(comparisons);
  std::vector<TextRow> rows;
  rows.push_back({"mean absolute error", percent_text(all.mape),
                  "median " + percent_text(all.median_ape) + ", 90th percentile " +
                      percent_text(all.p90_ape) + ", worst " + percent_text(all.worst_ape) +
                      ", bias " + signed_percent_text(all.bias)});
  rows.push_back({"bar to clear", percent_text(naive_mape(comparisons)),
                  (set.kind == MeasurementKind::collective
                       ? "one constant bus bandwidth, fitted on these rows"
                       : "one constant efficiency x ideal bubble, fitted on these rows")});
  if (const std::size_t left_out = num_largest(comparisons.size()); left_out > 0)
    rows.push_back({"without the " + std::to_string(left_out) + " largest",
                    percent_text(score_without_largest(comparisons, left_out).mape),
                    "picked after looking: not the score; it tells what a few rows weigh"});
  if (const auto share = interval_coverage(comparisons))
    rows.push_back(
        {"inside the interval", percent_text(*share), "of the measured times; the goal is 90 %"});
  if (const OrderScore& orders = set.orders; orders.apart > 0)
    rows.push_back({"order of two plans", share_text(orders.right, orders.apart),
                    "right, of " + std::to_string(orders.apart) +
                        " pairs that differ by more than 3 %; " +
                        share_text(static_cast<double>(orders.said), orders.apart) +
                        " are said to be known, " +
                        share_text(static_cast<double>(orders.said_right), orders.said) +
                        " of these are right"});
  return "\n" + text_table("lrw", rows);
}

std::string groups_text(const std::vector<ScoredRow>& comparisons) {
  const auto groups = by_group(comparisons);
  if (groups.size() < 2 && groups.front().name.empty()) return {};
  std::vector<TextRow> rows{
      {"group", "points", "mean", "bias", "order (Kendall)", "order (Spearman)", "regret"}};
  for (const auto& [name, members] : groups) {
    const Score of_group = score(members);
    const auto tau = kendall_tau(members), rho = spearman_rho(members);
    rows.push_back({name, std::to_string(members.size()), percent_text(of_group.mape),
                    signed_percent_text(of_group.bias), tau ? fixed_text(*tau, 2) : "-",
                    rho ? fixed_text(*rho, 2) : "-",
                    members.size() > 1 ? percent_text(top1_regret(members)) : "-"});
  }
  return "\n" + text_table("wrrrr?r??r", rows) +
         "  regret: what choosing the plan predicted fastest costs over the best measured one\n";
}

/// For a set whose groups are pairs: the ratio of the second row to the first in each, since the difference is the measurement.
std::string pairs_text(const std::vector<ScoredRow>& comparisons) {
  const auto groups = by_group(comparisons);
  std::vector<TextRow> rows{{"pair", "measured", "predicted", "ratio"}};
  std::vector<double> ratios;
  for (const auto& [name, members] : groups) {
    if (members.size() != 2 || name.empty()) return {};
    const ScoredRow &off = members.front(), &on = members.back();
    const double measured = on.measured / off.measured - 1,
                 predicted = on.predicted / off.predicted - 1;
    ratios.push_back(predicted / measured);
    rows.push_back({name, signed_percent_text(measured), signed_percent_text(predicted),
                    fixed_text(ratios.back(), 2)});
  }
  const auto right = std::ranges::count_if(ratios, [](double r) { return r > 0; });
  return "\n" + text_table("lr", rows) + "  sign right in " + std::to_string(right) + " of " +
         std::to_string(ratios.size()) + ", median size " +
         fixed_text(score_errors(ratios).median_ape, 2) + " of the measured\n";
}

/// Collectives have no plans to choose among: errors only.
std::string collective_groups_text(const std::vector<ScoredRow>& comparisons) {
  const auto groups = by_group(comparisons);
  if (groups.size() < 2) return {};
  std::vector<TextRow> rows{{"group", "points", "mean", "worst", "bias"}};
  for (const auto& [name, members] : groups) {
    const Score of_group = score(members);
    rows.push_back({name, std::to_string(members.size()), percent_text(of_group.mape),
                    percent_text(of_group.worst_ape), signed_percent_text(of_group.bias)});
  }
  return "\n" + text_table("lr", rows);
}

/// One line for each kind of reading, one for each timer.
std::string other_scores_text(const ValidatedSet& set) {
  std::vector<TextRow> rows;
  const auto add = [&rows](const std::string& name, const std::vector<double>& errors) {
    if (errors.empty()) return;
    const Score all = score_errors(errors);
    rows.push_back({name, percent_text(all.mape),
                    "of " + std::to_string(all.scored) + ", worst " + percent_text(all.worst_ape) +
                        ", bias " + signed_percent_text(all.bias)});
  };
  for (const MemoryKind kind : memory_kinds)
    add("memory, " + dashed_name(kind), memory_errors(set.memory, kind));
  for (const auto& [name, errors] : timer_errors(set.timers)) add("timer " + name, errors);
  return rows.empty() ? "" : "\n" + text_table("lrw", rows);
}

std::string capacity_text(const CapacityVerdicts& verdicts) {
  std::string text;
  const auto add = [&text](const char* what, const std::vector<std::string>& ids) {
    if (!ids.empty()) text += std::string("  ") + what + ": " + listed(ids) + "\n";
  };
  add("ended out of memory, and refused", verdicts.caught);
  add("ended out of memory, but accepted", verdicts.missed);
  add("ran, but refused for want of memory", verdicts.refused_that_ran);
  return text.empty() ? text : "\n" + text;
}

std::string fitted_text(const ValidatedSet& set) {
  const std::set<std::string>& numbers = set.fitted_numbers;
  if (numbers.empty())
    return set.never_fitted ? "\n  never fitted: no constant was chosen with this set\n" : "";
  return "\n  fitted on this set: " + listed(numbers) + "\n";
}

/// The first line of a reason is enough for a list; what follows shows where the text stands.
std::string skipped_text(const std::vector<SkippedPoint>& skipped) {
  std::string text;
  for (const SkippedPoint& point : skipped)
    text += "  skipped " + point.id + ": " + first_line_of(point.why) + "\n";
  return text.empty() ? text : "\n" + text;
}

constexpr const char* legend_text =
    "\n"
    "  bar     error of one constant (efficiency, bus bandwidth) fitted on these rows\n"
    "  inside  measured times inside the predicted 90 % interval, in %\n"
    "  fitted  how many numbers of the files in use were fitted on these very rows\n"
    "          (never: a set that nothing may be fitted on)\n"
    "  --details prints rows, timers, the order of plans, what was skipped\n";

std::string in_percent(double share) { return fixed_text(100 * share, 1); }

std::string signed_in_percent(double share) {
  std::string text = signed_percent_text(share);
  return text.substr(0, text.find(' '));
}

TextRow row_of(const ValidatedSet& set) {
  const std::string scored = std::to_string(set.comparisons.size());
  const bool are_all = set.comparisons.size() == set.num_points;
  TextRow row{set.name, are_all ? scored : scored + "/" + std::to_string(set.num_points)};
  if (set.comparisons.empty()) {
    row.insert(row.end(), 5, "-");
  } else {
    const Score all = score(set.comparisons);
    const auto inside = interval_coverage(set.comparisons);
    row.insert(row.end(), {in_percent(all.mape), in_percent(all.worst_ape),
                           signed_in_percent(all.bias), in_percent(naive_mape(set.comparisons)),
                           inside ? fixed_text(100 * *inside, 0) : "-"});
  }
  row.push_back(set.never_fitted && set.fitted_numbers.empty()
                    ? "never"
                    : std::to_string(set.fitted_numbers.size()));
  return row;
}

/// A heading and a row for each set of the kind; nothing where there is none. One without times, but with memory, has none here.
std::vector<TextRow> rows_of_times(const std::vector<ValidatedSet>& sets, MeasurementKind kind) {
  std::vector<TextRow> rows;
  for (const ValidatedSet& set : sets)
    if (set.kind == kind && (set.memory.empty() || !set.comparisons.empty()))
      rows.push_back(row_of(set));
  const bool of_iterations = kind == MeasurementKind::iteration;
  if (!rows.empty())
    rows.insert(rows.begin(),
                {of_iterations ? "iteration times, errors in %" : "collectives, errors in %",
                 "rows", "mean", "worst", "bias", "bar", "inside", "fitted"});
  return rows;
}

std::vector<TextRow> rows_of_memory(const std::vector<ValidatedSet>& sets) {
  std::vector<TextRow> rows;
  for (const ValidatedSet& set : sets)
    for (const MemoryKind kind : memory_kinds) {
      const std::vector<double> errors = memory_errors(set.memory, kind);
      if (errors.empty()) continue;
      const Score all = score_errors(errors);
      rows.push_back({set.name + ", " + dashed_name(kind), std::to_string(all.scored),
                      in_percent(all.mape), in_percent(all.worst_ape),
                      signed_in_percent(all.bias)});
    }
  if (!rows.empty())
    rows.insert(rows.begin(), {"memory, errors in %", "rows", "mean", "worst", "bias"});
  return rows;
}

/// Rows of sets with runs that ended out of memory; the last line is their sum.
std::vector<TextRow> rows_of_verdicts(const std::vector<ValidatedSet>& sets) {
  std::vector<TextRow> rows{
      {"memory, ran + out of memory", "fits", "at risk", "lower bound", "does not fit"}};
  std::array<CapacityVerdicts::Ends, 4> sum{};
  const auto add = [&rows](const std::string& name, const auto& by_verdict) {
    TextRow row{name};
    for (const CapacityVerdicts::Ends& ends : by_verdict)
      row.push_back(std::to_string(ends.ran) + " + " + std::to_string(ends.out_of_memory));
    rows.push_back(row);
  };
  for (const ValidatedSet& set : sets) {
    const CapacityVerdicts& verdicts = set.capacity;
    if (verdicts.caught.empty() && verdicts.missed.empty()) continue;
    add(set.name, verdicts.by_verdict);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i].ran += verdicts.by_verdict[i].ran;
      sum[i].out_of_memory += verdicts.by_verdict[i].out_of_memory;
    }
  }
  if (rows.size() == 1) return {};
  if (rows.size() > 2) add("all of them", sum);
  return rows;
}

}  // namespace

std::string validation_text(const ValidatedSet& set) {
  const std::string points = std::to_string(set.num_points);
  std::string text = set.name + ": ";
  text += set.comparisons.empty() && !(set.memory.empty() && set.capacity.empty())
              ? points + " points, scored by memory alone"
              : std::to_string(set.comparisons.size()) + " of " + points + " points scored";
  text += "\n  " + set.citation + "\n";
  if (!set.note.empty()) text += "  Note: " + set.note + "\n";
  for (const std::string& override : set.overrides)
    text += "  With " + override + " over every point: not the score of the shipped files\n";
  if (!set.has_scores()) text += "\n  nothing could be scored\n";
  if (!set.comparisons.empty()) {
    text += rows_text(set.comparisons) + score_text(set);
    if (set.kind == MeasurementKind::iteration)
      text += groups_text(set.comparisons) + pairs_text(set.comparisons);
    if (set.kind == MeasurementKind::collective) text += collective_groups_text(set.comparisons);
  }
  return text + other_scores_text(set) + capacity_text(set.capacity) + fitted_text(set) +
         skipped_text(set.skipped);
}

namespace {

/// Share of plan pairs whose order is right, with every set counting alike.
std::string orders_text(const std::vector<ValidatedSet>& sets) {
  double right = 0, said = 0, said_right = 0, covered = 0;
  std::size_t pairs = 0, with_apart = 0, with_said = 0, with_pairs = 0;
  const auto add = [](double& sum, auto part, std::size_t whole) -> std::size_t {
    if (whole > 0) sum += static_cast<double>(part) / static_cast<double>(whole);
    return whole > 0;
  };
  for (const ValidatedSet& set : sets) {
    const OrderScore& orders = set.orders;
    pairs += orders.apart;
    with_pairs += add(covered, orders.covered, orders.pairs);
    with_apart += add(right, orders.right, orders.apart);
    add(said, orders.said, orders.apart);
    with_said += add(said_right, orders.said_right, orders.said);
  }
  if (with_apart == 0) return "";
  const auto mean = [](double sum, std::size_t count) {
    return count == 0 ? std::string("-") : percent_text(sum / static_cast<double>(count));
  };
  return text_table("lrw", {{"order of two plans", mean(right, with_apart),
                             "right, of pairs that differ by more than 3 % (" +
                                 grouped_text(static_cast<double>(pairs)) + " pairs in " +
                                 count_text(with_apart, "set") + ", each set counting alike)"},
                            {"  said to be known", mean(said, with_apart), "of these pairs"},
                            {"  right where said", mean(said_right, with_said), "the goal is 90 %"},
                            {"  ratio in its interval", mean(covered, with_pairs),
                             "of all pairs; the goal is 90 %"}});
}

}  // namespace

std::string validation_summary(const std::vector<ValidatedSet>& sets, Legend legend) {
  std::vector<TextRow> rows;
  for (const auto& part :
       {rows_of_times(sets, MeasurementKind::iteration),
        rows_of_times(sets, MeasurementKind::collective), rows_of_memory(sets)}) {
    if (!rows.empty() && !part.empty()) rows.push_back({""});
    rows.insert(rows.end(), part.begin(), part.end());
  }
  std::set<std::string> overrides;
  const std::string orders = orders_text(sets);
  for (const ValidatedSet& set : sets) overrides.insert(set.overrides.begin(), set.overrides.end());
  std::string text = text_table("lrrr?r??r???r?r??", rows);
  if (const std::vector<TextRow> verdicts = rows_of_verdicts(sets); !verdicts.empty())
    text += (text.empty() ? "" : "\n") + text_table("lr", verdicts);
  if (!orders.empty()) text += (text.empty() ? "" : "\n") + orders;
  for (const std::string& override : overrides)
    text += "  With " + override + " over every point: not the score of the shipped files\n";
  return legend == Legend::shown ? text + legend_text : text;
}

namespace {

JsonValue with_scores(JsonValue json, const Score& score) {
  add_members(json, {{"mape", score.mape},
                     {"median_ape", score.median_ape},
                     {"p90_ape", score.p90_ape},
                     {"worst_ape", score.worst_ape},
                     {"bias", score.bias}});
  return json;
}

void add_groups(JsonValue& json, const std::vector<ScoredRow>& comparisons) {
  JsonValue groups = empty_object(), taus = empty_object(), rhos = empty_object(),
            regrets = empty_object();
  for (const auto& [name, members] : by_group(comparisons)) {
    groups.set(name, with_scores(object_of({{"scored", members.size()}}), score(members)));
    add_members(taus, {{name, kendall_tau(members)}});
    add_members(rhos, {{name, spearman_rho(members)}});
    if (members.size() > 1) regrets.set(name, JsonValue(top1_regret(members)));
  }
  add_members(json, {{"groups", groups},
                     {"kendall_tau", taus},
                     {"spearman_rho", rhos},
                     {"top1_regret", regrets}});
}

void add_time_scores(JsonValue& json, const ValidatedSet& set) {
  const std::vector<ScoredRow>& rows = set.comparisons;
  const std::size_t left_out = num_largest(rows.size());
  json = with_scores(std::move(json), score(rows));
  add_members(json, {{"naive_mape", naive_mape(rows)},
                     {"without_largest", with_scores(object_of({{"left_out", left_out}}),
                                                     score_without_largest(rows, left_out))}});
  add_groups(json, rows);
  add_members(json, {{"interval_coverage", interval_coverage(rows)}});
  const OrderScore& orders = set.orders;
  if (orders.pairs > 0)
    json.set("orders", object_of({{"pairs", orders.pairs},
                                  {"covered", orders.covered},
                                  {"apart", orders.apart},
                                  {"right", orders.right},
                                  {"said", orders.said},
                                  {"said_right", orders.said_right}}));
}

void add_memory_scores(JsonValue& json, const ValidatedSet& set) {
  for (const char* name :
       {"memory_mape", "memory_allocated_mape", "memory_reserved_mape", "memory_smi_mape"})
    add_members(json, {{name, find_metric(name)->of(set)}});
  if (set.kind != MeasurementKind::iteration) return;
  json.set("out_of_memory", object_of({{"caught", set.capacity.caught.size()},
                                       {"missed", set.capacity.missed.size()},
                                       {"refused_that_ran", set.capacity.refused_that_ran.size()},
                                       {"ran", set.capacity.ran.size()}}));
}

JsonValue set_json(const ValidatedSet& set) {
  const auto skipped = [](const SkippedPoint& point) {
    return object_of({{"id", point.id}, {"why", point.why}});
  };
  JsonValue json =
      object_of({{"set", set.name},
                 {"points", set.num_points},
                 {"scored", set.comparisons.size()},
                 {"skipped", array_of(set.skipped, skipped)},
                 {"fitted_on_this_set", array_of(set.fitted_numbers)},
                 {"never_fitted", set.never_fitted},
                 {"overrides", only_if(!set.overrides.empty(), array_of(set.overrides))}});
  if (!set.comparisons.empty()) add_time_scores(json, set);
  if (set.has_scores()) add_memory_scores(json, set);
  if (!set.timers.empty())
    json.set("timers_mape", object_by_key(timer_errors(set.timers), [](const auto& errors) {
               return *mean_absolute_error(errors);
             }));
  return json;
}

JsonValue point_json(const ValidatedSet& set, const ScoredRow& row) {
  std::optional<double> outside;
  if (row.judged) outside = share_outside_kernels(row.judged->breakdown);
  return object_of({{"set", set.name},
                    {"id", row.id},
                    {"group", row.group},
                    {"measured_s", row.measured},
                    {"predicted_s", row.predicted},
                    {"error", row.error()},
                    {"outside_kernels", outside},
                    {"interval_s", row.interval}});
}

JsonValue memory_json(const ValidatedSet& set, const MemoryComparison& comparison) {
  return object_of({{"set", set.name},
                    {"id", comparison.id},
                    {"kind", dashed_name(comparison.kind)},
                    {"ranks", comparison.ranks},
                    {"measured_bytes", comparison.measured.value()},
                    {"predicted_bytes", comparison.predicted.value()},
                    {"error", comparison.error()}});
}

JsonValue timer_json(const ValidatedSet& set, const ScoredRow& timer) {
  return object_of({{"set", set.name},
                    {"id", timer.id},
                    {"timer", timer.group},
                    {"measured_s", timer.measured},
                    {"predicted_s", timer.predicted},
                    {"error", timer.error()}});
}

}  // namespace

JsonValue validation_value(const std::vector<ValidatedSet>& sets) {
  JsonValue::Array points, memory, timers;
  for (const ValidatedSet& set : sets) {
    for (const ScoredRow& comparison : set.comparisons)
      points.push_back(point_json(set, comparison));
    for (const MemoryComparison& comparison : set.memory)
      memory.push_back(memory_json(set, comparison));
    for (const ScoredRow& timer : set.timers) timers.push_back(timer_json(set, timer));
  }
  std::optional<JsonValue> iterations;
  if (const std::vector<ScoredRow> all = iterations_of(sets); !all.empty())
    iterations = with_scores(object_of({{"scored", all.size()}}), score(all));
  return object_of({{"schema", "windtunnel/validation-v1"},
                    {"iterations", iterations},
                    {"sets", array_of(sets, set_json)},
                    {"points", JsonValue(std::move(points))},
                    {"memory", JsonValue(std::move(memory))},
                    {"timers", JsonValue(std::move(timers))}});
}

std::string validation_json(const std::vector<ValidatedSet>& sets) {
  return pretty_text(validation_value(sets)) + "\n";
}

namespace {

/// Kinds of GPUs beyond these have the same colours and marks of another form.
constexpr std::size_t num_colours = 8;

/// Sets with iterations; if none has any, all sets with comparisons.
std::vector<ValidatedSet> shown(const std::vector<ValidatedSet>& sets) {
  std::vector<ValidatedSet> iterations, all;
  for (const ValidatedSet& set : sets) {
    if (set.comparisons.empty()) continue;
    all.push_back(set);
    if (set.kind == MeasurementKind::iteration) iterations.push_back(set);
  }
  return iterations.empty() ? all : iterations;
}

}  // namespace

ScatterPlot scatter_plot(const std::vector<ValidatedSet>& sets) {
  const std::vector<ValidatedSet> drawn = shown(sets);
  const bool iterations = drawn.empty() || drawn.front().kind == MeasurementKind::iteration;
  ScatterPlot plot{{iterations ? "Predicted and measured iteration times"
                               : "Predicted and measured collective times",
                    Chart::Shape::marks,
                    {},
                    {}},
                   {}};
  Chart& chart = plot.chart;
  std::vector<double> times;
  std::map<std::string, std::vector<std::pair<const ValidatedSet*, const ScoredRow*>>> by_gpu;
  for (const ValidatedSet& set : drawn)
    for (const ScoredRow& row : set.comparisons)
      by_gpu[row.judged ? row.judged->gpu : set.name].emplace_back(&set, &row);
  for (const auto& [gpu, points] : by_gpu) {
    const std::string kind = "s" + std::to_string(plot.keys.size() % num_colours);
    const std::size_t form = plot.keys.size() / num_colours;
    std::vector<ScoredRow> rows;
    for (const auto& [set, row] : points) {
      const double measured = row->measured / 1_s, predicted = row->predicted / 1_s;
      times.insert(times.end(), {measured, predicted});
      chart.points.push_back({.x = measured,
                              .y = predicted,
                              .title = set->name + ", " + row->id + ": measured " +
                                       to_text(row->measured) + ", predicted " +
                                       to_text(row->predicted) + ", " +
                                       signed_percent_text(row->error()),
                              .kind = kind,
                              .is_hollow = row->judged && set->fitted_numbers.empty(),
                              .form = form});
      rows.push_back(*row);
    }
    plot.keys.push_back(
        {key_mark(kind, false, form), gpu + ": " + count_text(rows.size(), "point") +
                                          ", mean error " + percent_text(score(rows).mape)});
  }
  if (times.empty()) return plot;
  if (iterations) {
    plot.keys.push_back({key_mark("exact"), "some constant was fitted on the set"});
    plot.keys.push_back({key_mark("hollow"), "no constant was fitted on the set"});
  }
  chart.x = chart.y = logarithmic_axis(times);
  chart.x.text = chart.y.text = seconds_mark;
  chart.x.title = "measured";
  chart.y.title = "predicted";
  chart.height = 330;
  for (const double ratio :
       {0.9, 1.0, 1.1}) {  // from the edge at which it enters to that at which it leaves
    const double enters = std::max(1.0, 1 / ratio), leaves = std::min(1.0, 1 / ratio);
    chart.guides.push_back({chart.x.low * enters, chart.x.low * enters * ratio,
                            chart.x.high * leaves, chart.x.high * leaves * ratio, "exact"});
  }
  return plot;
}

std::string scatter_svg(const std::vector<ValidatedSet>& sets, const std::string& title) {
  const ScatterPlot plot = scatter_plot(sets);
  return chart_sheet(
      title.empty() ? plot.chart.label : title,
      count_text(static_cast<std::int64_t>(plot.chart.points.size()), "measured run") +
          "; dotted: exact, and 10 % off",
      {plot.chart}, plot.keys);
}

namespace {

using html::card;
using html::escaped;
using html::Table;

constexpr std::size_t worst_iterations = 12, worst_collectives = 6;  // named on the page

std::string whole(std::size_t count) { return grouped_text(static_cast<double>(count)); }

/// JSON pointer of a point in the document.
std::string pointer_of(std::size_t point) { return "/points/" + std::to_string(point) + "/"; }

/// The points of the document with these numbers.
std::string point_table(const std::string& caption, const html::DataView& document,
                        const std::vector<std::size_t>& points) {
  Table table{caption,
              {"point", "too short | too long", "error", "measured", "predicted", "set"},
              {},
              "llrrrl",
              "bars points"};
  double largest = 0;
  for (const std::size_t i : points)
    largest = std::max(largest, std::abs(document.amount(pointer_of(i) + "error")));
  for (const std::size_t i : points) {
    const std::string at = pointer_of(i);
    const double error = document.amount(at + "error");
    table.rows.push_back(
        {escaped(document.text(at + "id")),
         html::signed_bar(error, largest, "short", "long", signed_percent_text(error)),
         document.cell(at + "error", signed_percent_text),
         document.cell(at + "measured_s", html::text_of_time),
         document.cell(at + "predicted_s", html::text_of_time),
         escaped(document.text(at + "set"))});
  }
  return html::table(table);
}

std::string overrides_paragraph(const std::vector<ValidatedSet>& sets) {
  if (sets.empty() || sets.front().overrides.empty()) return "";
  // All are changed alike.
  return "<p class=\"job\">With " + escaped(listed(sets.front().overrides)) +
         " over every point: not the score of the shipped files.</p>\n";
}

std::string headline(const std::vector<ValidatedSet>& sets, const html::DataView& document) {
  std::size_t points = 0, scored = 0, skipped = 0;
  for (const ValidatedSet& set : sets) {
    points += set.num_points;
    scored += set.comparisons.size();
    skipped += set.skipped.size();
  }
  const std::vector<ScoredRow> iterations = iterations_of(sets);
  if (iterations.empty())
    return html::hero("predicted against measured",
                      "<h1><span class=\"big\">" + whole(scored) + "</span> times compared</h1>\n",
                      "");
  const auto within = [&](double limit) {
    return static_cast<std::size_t>(std::ranges::count_if(
        iterations, [&](const ScoredRow& row) { return std::abs(row.error()) <= limit; }));
  };
  constexpr double close = 0.05, near = 0.10;
  const std::string html =
      "<h1><span class=\"big\">" + document.cell("/iterations/mape", percent_text) +
      "</span> mean error</h1>\n<p class=\"interval\"><span>over " +
      document.cell("/iterations/scored", grouped_text) +
      " measured iterations, none left out; errors count without their "
      "sign</span></p>\n<p class=\"job\">" +
      whole(within(close)) + " of them within 5 %, " + whole(within(near)) + " within 10 %. " +
      (document.amount("/iterations/bias") < 0 ? "On the whole, predictions are too short."
                                               : "On the whole, predictions are too long.") +
      "</p>\n" + overrides_paragraph(sets);
  const auto score_card = [&](const char* label, const char* key, const char* note,
                              std::string (*text)(double) = percent_text) {
    return card(label, document.cell(std::string("/iterations/") + key, text), note);
  };
  return html::hero(
      "predicted against measured", html,
      score_card("median", "median_ape", "half are closer") +
          score_card("90th percentile", "p90_ape", "nine of ten are closer") +
          score_card("worst", "worst_ape", "named below") +
          score_card("bias", "bias", "mean error with its sign", signed_percent_text) +
          card("sets", whole(sets.size()), whole(points) + " points") +
          card("not compared", whole(skipped), "listed below, with the reason"));
}

/// The points of sets of one kind, the largest error first.
std::string worst_table(const std::vector<ValidatedSet>& sets, const html::DataView& document,
                        MeasurementKind kind, const char* title, std::size_t limit) {
  std::vector<std::size_t> points;
  std::size_t end = 0;
  for (const ValidatedSet& set : sets)
    for (std::size_t i = 0; i < set.comparisons.size(); ++i, ++end)
      if (set.kind == kind) points.push_back(end);
  const auto size = [&](std::size_t i) {
    return std::abs(document.amount(pointer_of(i) + "error"));
  };
  std::ranges::stable_sort(points, [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  points.resize(std::min(limit, points.size()));
  return points.empty() ? "" : html::subsection(title, "", point_table(title, document, points));
}

std::string set_table(const std::vector<ValidatedSet>& sets, const html::DataView& document) {
  Table table{"Score of every set",
              {"set", "scored", "mean", "median", "worst", "bias", "one constant",
               "inside interval", "memory", "measured on"},
              {},
              "lrrrrrrrrl",
              "sets"};
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const std::string at = "/sets/" + std::to_string(i) + "/";
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {"<b>" + escaped(sets[i].name) + "</b>", document.cell(at + "scored", grouped_text) +
                                                       " of " +
                                                       document.cell(at + "points", grouped_text)};
    for (const std::string key : {"mape", "median_ape", "worst_ape", "bias", "naive_mape",
                                  "interval_coverage", "memory_mape"})
      row.push_back(document.cell(at + key, key == "bias" ? signed_percent_text : percent_text));
    row.push_back(escaped(sets[i].citation));
  }
  return html::table(table);
}

std::string skipped_table(const std::vector<ValidatedSet>& sets) {
  Table table{"Points that were not compared", {"point", "set", "why"}, {}, "lllr", "inputs"};
  for (const ValidatedSet& set : sets)
    for (const SkippedPoint& point : set.skipped)
      table.rows.push_back({escaped(point.id), escaped(set.name), escaped(point.why)});
  return table.rows.empty() ? "" : html::table(table);
}

}  // namespace

std::string validation_page(const std::vector<ValidatedSet>& sets) {
  const JsonValue value = validation_value(sets);
  const html::DataView document{&value};
  std::vector<std::size_t> all(document.size("/points"));
  std::iota(all.begin(), all.end(), std::size_t{0});
  HtmlPage page{"validate", "Predicted against measured", headline(sets, document)};
  if (!all.empty()) {
    const ScatterPlot plot = scatter_plot(sets);
    page.add("plot", "Plot", "Predicted against measured",
             html::quiet("Each point is one measured run; on the dotted line in the middle the "
                         "prediction is exact, on the others it is 10 % off. Rest the pointer on a "
                         "point for its set and name.") +
                 chart_svg(plot.chart) + keys_html(plot.keys));
    page.add(
        "worst", "Worst rows", "The worst rows",
        worst_table(sets, document, MeasurementKind::iteration, "Iterations", worst_iterations) +
            worst_table(sets, document, MeasurementKind::collective, "Collectives",
                        worst_collectives));
  }
  page.add("sets", "Sets", "Sets",
           html::quiet("Errors without sign, as a mean over all rows of the set. One constant: the "
                       "error of one constant efficiency times the ideal pipeline bubble, fitted "
                       "on the same rows, which every model must clear.") +
               set_table(sets, document));
  page.add("skipped", "", "Not compared", skipped_table(sets));
  if (!all.empty())
    page.add("all", "Every row", "Every row",
             html::details("All " + whole(all.size()) + " rows, in the order of the files",
                           point_table("All rows", document, all)));
  page.data = {{"report", pretty_text(value) + "\n"}};
  page.footer =
      "windtunnel " WINDTUNNEL_VERSION " · windtunnel validate --json prints the same numbers";
  return html_document(page);
}

}  // namespace windtunnel
