#include "sweep/results.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/number_in.hpp"
#include "core/staged_files.hpp"
#include "core/terminal_safe.hpp"
#include "evidence/evidence.hpp"
#include "evidence/measurement_set.hpp"
#include "report/json_object.hpp"
#include "report/terminal_text.hpp"
#include "sweep/sweep_plot.hpp"

namespace windtunnel {
namespace {

constexpr std::array figures{"gpus",
                             "iteration_time_s",
                             "iteration_time_low_s",
                             "iteration_time_high_s",
                             "samples_per_s",
                             "tokens_per_s",
                             "model_tflops_per_gpu",
                             "mfu",
                             "memory_max_bytes",
                             "fits",
                             "memory_verdict",
                             "failure",
                             "error"};

/// Text as a terminal may show it; the rest as JSON. A table's program takes text that begins with a mark for a formula, which may
/// read files and open addresses: an apostrophe before it makes it text (OWASP, "CSV Injection").
std::string field_of(const JsonValue* value) {
  constexpr std::string_view marks = "=+-@\t\r";
  if (value == nullptr || value->is_null()) return {};
  if (!value->is_string()) return for_terminal(canonical_text(*value));
  const std::string text = for_terminal(value->string());
  const bool is_marked = text.find_first_of(marks) == 0;
  return (is_marked && !number_in(text) ? "'" : "") + text;
}

/// Both ends of the interval have columns of their own.
const JsonValue* figure_of(const JsonValue& row, const std::string& name) {
  for (const auto& [low, high, key] :
       {std::tuple{"iteration_time_low_s", "iteration_time_high_s", time_interval_key},
        {"speedup_low", "speedup_high", speedup_interval_key}})
    if (name == low || name == high)
      return find_at(row, std::string("/") + key + (name == low ? "/0" : "/1"));
  return row.find(name);
}

/// Two processes that end together may write in either order, so each looks once more. Rows that keep coming are left to those who add them:
/// they merge at their own end.
constexpr int most_rounds = 3;

}  // namespace

PartRows with_speedups(PartRows rows, const Sweep& sweep) {
  const std::optional<std::size_t> baseline = sweep.points().baseline();
  const auto found = baseline ? rows.by_point.find(*baseline) : rows.by_point.end();
  if (found == rows.by_point.end() || !found->second.ok) return rows;
  const JsonValue base = found->second.content;
  const auto rate = [](const JsonValue& row) { return figure(row, "tokens_per_s"); };
  if (rate(base) <= 0) return rows;
  // Times of a token: iterations may hold different numbers of them.
  const auto judged = [&](const JsonValue& row) {
    return judged_run(row).scaled(1 / (rate(row) * figure(row, "iteration_time_s")));
  };
  const PairErrors errors = read_evidence(sweep.library()).pairs;
  const JudgedRun judged_base = judged(base);
  for (auto& [point, row] : rows.by_point) {
    if (!row.ok) continue;
    JsonValue more = object_of({{speedup_key, rate(row.content) / rate(base)}});
    if (point != *baseline && rate(row.content) > 0)
      if (const auto ordering = order(judged_base, judged(row.content), errors))
        add_members(more, {{speedup_interval_key, array_of(std::array{ordering->interval.first,
                                                                      ordering->interval.second})},
                           {speedup_verdict_key, name_of(ordering->verdict)}});
    row = *parse_row(with_members(row.line, more, sweep.hash()));
  }
  return rows;
}

std::vector<FrontPoint> front_of(const PartRows& rows, const std::vector<std::string>& columns) {
  std::vector<FrontPoint> points;
  std::vector<PricedPoint> priced;
  for (const auto& [number, row] : rows.by_point) {
    if (!row.ok || !fits(row.content)) continue;
    const auto days = number_of(row.content.find("days"));
    const auto cost = number_of(row.content.find("cost"));
    if (!days || !cost) continue;
    priced.push_back({point_name(row.content, columns), *days, *cost});
    points.push_back({number, {}});
  }
  mark_pareto_front(priced);
  for (std::size_t i = 0; i < points.size(); ++i) points[i].priced = std::move(priced[i]);
  return points;
}

std::string results_csv(const PartRows& rows, const std::vector<std::string>& columns,
                        const std::vector<std::string>& asked) {
  std::vector<std::string> fields{"point", "id"};
  const bool has_labels = std::ranges::any_of(
      rows.by_point, [](const auto& each) { return each.second.content.find("label") != nullptr; });
  if (has_labels) fields.emplace_back("label");
  fields.insert(fields.end(), columns.begin(), columns.end());
  fields.emplace_back("ok");
  fields.insert(fields.end(), figures.begin(), figures.end());
  fields.insert(fields.end(), asked.begin(), asked.end());
  if (std::ranges::find(asked, speedup_key) != asked.end())
    fields.insert(fields.end(), {"speedup_low", "speedup_high", speedup_verdict_key});
  const bool has_front = std::ranges::find(asked, "cost") != asked.end();
  if (has_front) fields.emplace_back("on_front");
  std::map<std::size_t, std::string> fronts;  // of points that have days and a cost
  for (const FrontPoint& each : front_of(rows, columns))
    fronts[each.point] = each.priced.on_front ? "true" : "false";
  const std::vector<std::string> header = fields;
  for (std::string& field : fields) field = for_terminal(field);
  std::string text = csv_line(fields);
  for (const auto& [point, row] : rows.by_point) {
    fields.clear();
    for (const std::string& name : header)
      if (name != "on_front") fields.push_back(field_of(figure_of(row.content, name)));
    if (has_front) fields.push_back(fronts[point]);
    text += csv_line(fields);
  }
  return text;
}

PartRows merge_results(const std::filesystem::path& directory, const Sweep& sweep) {
  for (int round = 1;; ++round) {
    PartRows rows = with_speedups(read_parts(directory, sweep), sweep);
    StagedFiles files;
    std::string lines;
    for (const auto& [point, row] : rows.by_point) lines += row.line + "\n";
    files.add(directory / "results.jsonl", lines);
    files.add(directory / "results.csv",
              results_csv(rows, sweep.points().columns(), sweep.asked_figures()));
    const std::string picture = sweep_svg(sweep.name(), sweep.points().columns(), rows);
    if (!picture.empty()) files.add(directory / "sweep.svg", picture);
    files.commit();
    std::error_code ignored;
    if (picture.empty()) std::filesystem::remove(directory / "sweep.svg", ignored);
    if (round == most_rounds || size_of_parts(directory) == rows.num_bytes) return rows;
  }
}

}  // namespace windtunnel
