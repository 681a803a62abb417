#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "core/json_value.hpp"
#include "core/text_list.hpp"
#include "report/html_text.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_json.hpp"
#include "report/report_view.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"
#include "scenario/scenario.hpp"
#include "simulate/simulate.hpp"
#include "simulate/tasks.hpp"
#include "sweep/results.hpp"
#include "sweep/sweep_plot.hpp"
#include "sweep/sweep_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using detail::time_text;
using detail::with_spaces;
using html::card;
using html::DataView;
using html::element;
using html::escaped;
using html::number;

/// A point of a sweep simulated once more, with everything that `run` says of it.
struct ExplainedPoint {
  std::size_t point = 0;
  JsonValue report;   ///< as run --json has it
  JsonValue reasons;  ///< by line of the breakdown, what makes it so long
};

/// Simulates those points, several at once. Points that fail are left out.
std::vector<ExplainedPoint> explain_points(const Sweep& sweep,
                                           const std::vector<std::size_t>& points) {
  Tasks<ExplainedPoint> tasks;
  tasks.count = points.size();
  tasks.at_once = default_at_once();
  tasks.work = [&](std::size_t i) {
    const Report report =
        simulate(sweep.planned(sweep.scenario(points[i])), {.evidence = &sweep.library()}).report;
    return ExplainedPoint{points[i], report_value(report), reasons_value(report)};
  };
  std::vector<ExplainedPoint> explained;
  for (TaskOutcome<ExplainedPoint>& outcome : run_tasks(tasks))
    if (auto* point = std::get_if<ExplainedPoint>(&outcome)) explained.push_back(std::move(*point));
  return explained;
}

std::string whole(std::size_t count) { return grouped_text(static_cast<double>(count)); }

/// The row at that place of the ranking, whose numbers are bound to the page's data.
DataView view_of(const Row& row, std::size_t place) {
  return {&row.content, "/" + std::to_string(place), "sweep-points"};
}

/// Contents of a sweep's page.
struct SweepContent {
  SweepContent(const Sweep& its_sweep, const PartRows& its_rows)
      : sweep(its_sweep), rows(its_rows), ranked(ranked_rows(sweep, rows)), shown(ranked.rows) {
    if (shown.size() > most_page_rows) shown.resize(most_page_rows);
    data = plot_data(rows, sweep.points().columns());
    explained = explain_points(sweep, points_to_explain());
  }

  const Sweep& sweep;
  const PartRows& rows;
  RankedRows ranked;
  std::vector<const Row*> shown;  ///< the first of the ranked
  std::optional<PlotData> data;
  std::vector<ExplainedPoint> explained;

  bool has_best() const { return ranked.fitting > 0; }
  const Row& best() const { return *shown.front(); }
  const JsonValue& row_of(const ExplainedPoint& each) const {
    return rows.by_point.at(each.point).content;
  }

  /// Its label, or "nodes 512, micro_batch 1".
  std::string name_of(const JsonValue& row) const {
    return point_name(row, sweep.points().columns());
  }

  /// The reports of the explained points, in the page's data "explained".
  html::DataViews reports() const {
    html::DataViews views;
    for (const ExplainedPoint& each : explained)
      views.push_back({&each.report, "/" + std::to_string(views.size()), "explained"});
    return views;
  }

 private:
  /// The fastest at each place of the axis, at most ten, and the best of all.
  std::vector<std::size_t> points_to_explain() const {
    constexpr std::size_t most = 10;
    std::vector<std::size_t> points;
    if (data) {
      const std::vector<PlotPoint> fastest = fastest_points(*data);
      const std::size_t count = std::min(most, fastest.size());
      for (std::size_t i = 0; i < count; ++i)
        points.push_back(
            fastest[count == 1 ? 0 : i * (fastest.size() - 1) / (count - 1)].row->point);
    } else if (ranked.ok() > 0) {
      points.push_back(shown.front()->point);
    }
    if (has_best() && std::ranges::find(points, best().point) == points.end())
      points.push_back(best().point);
    return points;
  }
};

/// "; memory at risk", "; not known to fit": what must be said of a point that is called the best.
std::string doubt_note(const JsonValue& row) {
  const std::string doubt = doubt_of_fit(row);
  return doubt.empty() ? "" : doubt == "at risk" ? "; memory at risk" : "; not known to fit";
}

std::string best_headline(const SweepContent& page) {
  if (!page.has_best())
    return std::string("<h1><span class=\"big\">No point</span> ") +
           (page.ranked.ok() == 0 ? "could be simulated" : "fits in memory") + "</h1>\n";
  const DataView best = view_of(page.best(), 0);
  return "<h1><span class=\"big\">" + best.cell("/tokens_per_s", grouped_text) +
         "</span> tokens/s at best</h1>\n<p class=\"job best-values\">Best point, " +
         std::to_string(page.best().point) + ": " + escaped(page.name_of(page.best().content)) +
         "</p>\n<p class=\"job\">" + best.cell("/iteration_time_s", html::text_of_time) +
         " per iteration on " + best.cell("/gpus", grouped_text) + " GPUs, MFU " +
         best.cell("/mfu", percent_text) + ", " + memory_mark(page.best().content) +
         best.cell("/memory_max_bytes", html::text_of_bytes) + " of memory on the fullest GPU" +
         doubt_note(page.best().content) + ".</p>\n";
}

/// Growth of throughput from the smallest cluster to the largest while nothing else changes.
std::string scaling_text(const SweepContent& page) {
  const std::optional<Scaling> scaling = page.data ? scaling_of(*page.data) : std::nullopt;
  if (!scaling) return "";
  const PlotPoint &first = *scaling->smallest, &last = *scaling->largest;
  const double growth = last.tokens_per_s / first.tokens_per_s, ideal = last.x / first.x;
  const std::string& name = scaling->series->name;
  return "<p class=\"job\">" + (name.empty() ? "From " : "With " + escaped(name) + ", from ") +
         grouped_text(first.x) + " to " + grouped_text(last.x) + " GPUs, " +
         significant_text(ideal, 3) + " times as many, training is " + significant_text(growth, 3) +
         " times as fast: a scaling efficiency of " + escaped(percent_text(growth / ideal)) +
         (page.data->batch_grows ? ", with a batch that grows alike" : "") + ".</p>\n";
}

/// A card of the fitting point whose figure is the smallest, or with a negative sign the largest.
std::string extreme(const SweepContent& page, const std::string& key, const char* label,
                    double sign, const html::NumberText& text) {
  const auto end = page.shown.begin() +
                   static_cast<std::ptrdiff_t>(std::min(page.ranked.fitting, page.shown.size()));
  const auto found = std::ranges::min_element(page.shown.begin(), end, {}, [&](const Row* row) {
    return sign * figure(row->content, key);
  });
  if (found == end) return "";
  const auto place = static_cast<std::size_t>(found - page.shown.begin());
  return card(label, view_of(**found, place).cell("/" + key, text),
              "point " + std::to_string((*found)->point) + doubt_note((*found)->content));
}

std::string headline(const SweepContent& page) {
  const std::size_t total = page.sweep.points().size(), left = total - page.rows.by_point.size();
  const std::string baseline = baseline_text(page.sweep, page.rows),
                    same = same_text(page.sweep, page.rows);
  std::string html = best_headline(page) + scaling_text(page);
  if (left > 0)
    html += html::verdict("doubtful", "",
                          whole(left) + " of " + whole(total) + " points are left to do");
  if (page.ranked.failed > 0)
    html += html::verdict("bad", "",
                          whole(page.ranked.failed) + " of " + whole(total) +
                              " points could not be simulated; the reasons stand below");
  if (!baseline.empty()) html += "<p class=\"job\">" + escaped(baseline) + "</p>\n";
  if (!same.empty()) html += html::verdict("doubtful", "", same);
  return html::hero(
      page.sweep.name(), html,
      card("points", number("/points", whole(total)), "of the sweep") +
          card("simulated", number("/ok", whole(page.ranked.ok()))) +
          card("failed", number("/failed", whole(page.ranked.failed)), "each with its reason") +
          card("too large", number("/does_not_fit", whole(page.ranked.too_large)),
               "do not fit in memory") +
          extreme(page, "mfu", "best MFU", -1, percent_text) +
          extreme(page, "iteration_time_s", "shortest iteration", 1, html::text_of_time));
}

std::string curves(const SweepContent& page) {
  if (!page.data)
    return "<p>A curve needs two simulated points that differ; here there are none to "
           "draw.</p>\n";
  std::string pictures, text;
  for (const Chart& chart : sweep_charts(*page.data)) pictures += chart_svg(chart);
  if (!page.data->others.empty())
    text += "There are more than " + std::to_string(most_series) +
            " lines' worth of other values: the " + std::to_string(most_series) +
            " with the fastest points are drawn, the others' points are dots. ";
  if (page.data->categories.empty())
    text += "A line joins points that differ in " +
            std::string(page.data->x_counts_gpus ? "the size of the job" : "what the axis shows") +
            " alone. ";
  if (scaling_of(*page.data))
    text += "The dotted line is what the throughput per GPU of its smallest cluster would give. ";
  return keys_html(curve_keys(*page.data)) + "<div class=\"plots\">\n" + pictures + "</div>\n" +
         (text.empty() ? "" : html::quiet(escaped(text)));
}

/// "512 GPUs, micro_batch 2"; the point's label where it has one.
std::string label_of(const SweepContent& page, const ExplainedPoint& explained) {
  const JsonValue& row = page.row_of(explained);
  const bool by_gpus = page.data && page.data->x_counts_gpus;
  if (!by_gpus || row.find("label") != nullptr) return page.name_of(row);
  std::vector<std::string> others = page.sweep.points().columns();
  std::erase(others, "/nodes");
  const std::string name = point_name(row, others);
  return grouped_text(figure(row, "gpus")) + " GPUs" + (name.empty() ? "" : ", " + name);
}

/// Reasons for the breakdown lines of the best point.
std::string best_reasons(const SweepContent& page) {
  if (!page.has_best()) return "";
  const auto found = std::ranges::find(page.explained, page.best().point, &ExplainedPoint::point);
  if (found == page.explained.end()) return "";
  const DataView report = page.reports()[static_cast<std::size_t>(found - page.explained.begin())];
  const Seconds time{report.amount("/iteration_time_s")};
  std::vector<std::string> lines;
  for (const JsonValue::Member& reason : found->reasons.object()) lines.push_back(reason.key);
  std::ranges::stable_sort(lines, [&](const auto& a, const auto& b) {
    return report.amount("/breakdown_s/" + a) > report.amount("/breakdown_s/" + b);
  });
  std::string items;
  for (const std::string& line : lines) {
    const std::string at = "/breakdown_s/" + line;
    items += html::reason_item(
        line,
        escaped(with_spaces(line)) + ": " +
            report.cell(at, [time](double part) { return time_text(Seconds{part}, time); }) + ", " +
            percent_text(report.amount(at) / (time / 1_s)),
        "<p>" + escaped(text_at(found->reasons, line)) + "</p>");
  }
  return html::subsection("Why does the best point take this long?", "", html::list("why", items));
}

std::string time_section(const SweepContent& page) {
  if (page.explained.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const DataView& report : page.reports()) {
    const ExplainedPoint& explained = page.explained[rows.size()];
    const Seconds time{report.amount("/iteration_time_s")};
    rows.push_back(
        {"<span class=\"name\" title=\"" + escaped(page.name_of(page.row_of(explained))) + "\">" +
             escaped(label_of(page, explained)) + "</span>",
         html::stacked_bar(html::breakdown_pieces(report.find("/breakdown_s"), time, time),
                           "where the time of point " + std::to_string(explained.point) + " goes"),
         report.cell("/iteration_time_s", html::text_of_time)});
  }
  return html::quiet(
             "Shares of each iteration, on the GPUs that finish last; behind each bar the "
             "iteration time." +
             std::string(page.data ? " Along the axis of the curves, the fastest point "
                                     "that fits at each place."
                                   : "")) +
         html::breakdown_legend(page.reports()) +
         html::bar_chart("Where the time goes, by point", std::move(rows),
                         html::axis(100, percent_mark)) +
         best_reasons(page);
}

/// A column of figures in the table: how the number is printed.
struct FigureColumn {
  std::string key, title;
  double scale = 1;
  int digits = 0;
  std::string unit = {};
  bool largest_first = false;  ///< the order of the first click

  std::string text(double number) const {
    return digits == 0 ? grouped_text(number / scale) : fixed_text(number / scale, digits);
  }
};

std::vector<FigureColumn> figure_columns(const SweepContent& page) {
  constexpr double percent = 0.01, gib = 1073741824, millionth = 1e-6, ms = 1e-3, us = 1e-6;
  constexpr int digits = 3;
  // The unit that suits the longest iteration.
  double longest = 0;
  for (const Row* row : page.shown)
    longest = std::max(longest, figure(row->content, "iteration_time_s"));
  const auto [scale, unit] = longest >= 1 || longest == 0 ? std::pair(1.0, "s")
                             : longest >= ms              ? std::pair(ms, "ms")
                                                          : std::pair(us, "us");
  std::vector<FigureColumn> columns{
      {"gpus", "GPUs"},
      {"iteration_time_s", std::string(unit) + "/iteration", scale, digits, unit},
      {time_interval_key, "90 % interval", scale, digits, unit},
      {"tokens_per_s", "tokens/s", 1, 0, "", true},
      {"model_tflops_per_gpu", "TFLOP/s per GPU", 1, 1, "", true},
      {"mfu", "MFU, %", percent, 1, "%", true},
      {"memory_max_bytes", "memory, GiB", gib, 1, "GiB"}};
  const Objective objective = page.sweep.choices().objective;
  if (objective == Objective::cost_per_token)
    columns.push_back({"cost_per_token", "cost of 10^6 tokens", millionth, digits, "of a million"});
  else if (!is_always_shown(objective))
    columns.push_back({name_of(objective), unit_of(objective), 1, digits});
  for (const std::string& figure : page.sweep.asked_figures()) {
    if (figure == speedup_key)
      columns.insert(columns.end(), {{speedup_key, "speed-up", 1, digits, "", true},
                                     {speedup_interval_key, "its 90 %", 1, digits, "", true}});
    if (figure == "days" && objective != Objective::days) columns.push_back({"days", "days", 1, 1});
    if (figure == "cost") columns.push_back({"cost", "cost"});
  }
  return columns;
}

/// A column of the table of points: what the script that sorts it needs to know of it, the class of its cells, and these.
struct PointColumn {
  std::string attributes, title, kind;
  std::function<std::string(const JsonValue& row, const DataView& view)> cell;
};

std::vector<PointColumn> point_columns(const SweepContent& page) {
  std::vector<PointColumn> columns;
  const auto add_figure = [&](const FigureColumn& figure) {
    columns.push_back(
        {"data-key=\"" + figure.key + "\" data-scale=\"" + significant_text(figure.scale, 17) +
             "\" data-digits=\"" + std::to_string(figure.digits) + "\" data-unit=\"" + figure.unit +
             "\" data-first=\"" + (figure.largest_first ? "descending" : "ascending") + "\"",
         figure.title, "n", [figure](const JsonValue& row, const DataView& view) {
           const std::string at = "/" + figure.key;
           const auto cell = [&](const std::string& end) {
             return view.cell(
                 at + end, [&](double number) { return figure.text(number); }, figure.unit);
           };
           if (view.size(at) == 2) return cell("/0") + " to " + cell("/1");
           if (!view.number(at)) return std::string();
           return (figure.key == "memory_max_bytes" ? memory_mark(row) : "") + cell("");
         }});
  };
  const auto add_text = [&](const std::string& key, const std::string& title) {
    columns.push_back(
        {"data-key=\"" + escaped(key) + "\"", title, "",
         [key](const JsonValue& row, const DataView&) { return escaped(text_at(row, key)); }});
  };
  add_figure({"point", "point"});
  const bool has_labels = page.sweep.points().has_labels();
  if (has_labels) add_text("label", "name");
  // A label that every row has is shown in place of its values.
  if (!has_labels || !std::ranges::all_of(page.shown, [](const Row* row) {
        return row->content.find("label") != nullptr;
      }))
    for (const std::string& column : page.sweep.points().columns())
      add_text(column, short_name(column, page.sweep.points().columns()));
  for (const FigureColumn& figure : figure_columns(page)) add_figure(figure);
  if (page.sweep.choices().plan == JobPlan::best) add_text("plan", "best plan");
  columns.push_back({"data-key=\"fits\"", "fits", "", [](const JsonValue& row, const DataView&) {
                       return row.find("fits") == nullptr ? ""
                              : !fits(row)                ? "<strong class=\"bad\">NO</strong>"
                              : *doubt_of_fit(row) != 0   ? doubt_of_fit(row)
                                                          : "yes";
                     }});
  // Why, the section of failed points says.
  if (page.ranked.failed > 0) add_text("failure", "failed");
  return columns;
}

std::string point_section(const SweepContent& page) {
  if (page.shown.empty()) return "<p>No point has been done yet.</p>\n";
  const auto class_of = [](const PointColumn& column) {
    return column.kind.empty() ? "" : "class=\"" + column.kind + "\"";
  };
  const std::vector<PointColumn> columns = point_columns(page);
  std::string head, body;
  for (const PointColumn& column : columns)
    head += element("th", class_of(column) + " " + column.attributes, escaped(column.title));
  for (std::size_t i = 0; i < std::min(first_page_rows, page.shown.size()); ++i) {
    const Row& row = *page.shown[i];
    std::string cells;
    for (const PointColumn& column : columns)
      cells += element("td", class_of(column), column.cell(row.content, view_of(row, i)));
    body += element("tr", row.ok && !fits(row.content) ? "class=\"large\"" : "", cells) + "\n";
  }
  std::string note = std::string(order_words(page.sweep.choices().objective)) +
                     " first; what does not fit in memory, then what failed, last.";
  if (page.rows.by_point.size() > page.shown.size())
    note += " Of " + whole(page.rows.by_point.size()) + " points these are the first " +
            whole(page.shown.size()) + "; results.csv has all.";
  std::vector<PricedPoint> priced;
  for (const FrontPoint& each : front_of(page.rows, page.sweep.points().columns()))
    priced.push_back(each.priced);
  return chart_svg(days_money_chart(priced)) + html::quiet(escaped(note)) +
         "<p class=\"quiet sort-hint\" hidden>Press a column's head to sort by it.</p>\n"
         "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Points\"><table "
         "class=\"points-table\" data-shown=\"" +
         std::to_string(first_page_rows) + "\">\n<thead><tr>" + head + "</tr></thead>\n<tbody>\n" +
         body + "</tbody></table></div>\n";
}

/// Failed points with the same reason together, the commonest first.
std::string failure_section(const SweepContent& page) {
  if (page.ranked.failed == 0) return "";
  struct Group {
    std::string kind, error;
    std::vector<const Row*> rows;
  };
  std::vector<Group> groups;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (const Row* row : page.shown) {
    if (row->ok) continue;
    const std::string kind = text_at(row->content, "failure"),
                      error = text_at(row->content, "error");
    const auto [place, is_new] = places.try_emplace({kind, error}, groups.size());
    if (is_new) groups.push_back({kind, error, {}});
    groups[place->second].rows.push_back(row);
  }
  std::ranges::stable_sort(
      groups, [](const Group& a, const Group& b) { return a.rows.size() > b.rows.size(); });
  constexpr std::size_t most_groups = 50, most_named = 3;
  html::Table table{
      "Failed points", {"kind", "reason", "points", "such as"}, {}, "llllr", "failures"};
  for (std::size_t i = 0; i < std::min(most_groups, groups.size()); ++i) {
    std::string named;
    for (std::size_t k = 0; k < std::min(most_named, groups[i].rows.size()); ++k)
      named +=
          (k == 0 ? "" : "<br>") + escaped("point " + std::to_string(groups[i].rows[k]->point) +
                                           ": " + page.name_of(groups[i].rows[k]->content));
    table.rows.push_back({escaped(with_spaces(groups[i].kind)), escaped(groups[i].error),
                          whole(groups[i].rows.size()), named});
  }
  return html::table(table) + (groups.size() > most_groups
                                   ? html::quiet(whole(groups.size() - most_groups) +
                                                 " more reasons stand in results.csv.")
                                   : "");
}

/// Inputs that all explained points share.
std::string input_section(const SweepContent& page) {
  const html::InputTables inputs = html::input_tables(page.reports(), {});
  if (inputs.common.empty())
    return "<p>No point could be simulated, so there is nothing to list.</p>\n";
  return "<p>" + whole(inputs.num_common) +
         (page.explained.size() == 1
              ? std::string(" inputs of the point that was looked at")
              : " inputs are the same in all " + whole(page.explained.size()) +
                    " points that were looked at") +
         (inputs.num_different > 0
              ? "; " + whole(inputs.num_different) +
                    (inputs.num_different == 1 ? " differs" : " differ") + " between them"
              : "") +
         ".</p>\n" + html::details("The inputs that all share, with their sources", inputs.common);
}

std::string scenario_section(const SweepContent& page) {
  html::Table matrix{"What is swept", {"pointer", "values"}, {}, "ll", "matrix"};
  for (const std::string& column : page.sweep.points().columns()) {
    const std::string values =
        listed(page.sweep.points().tried(column), [](const JsonValue& value) {
          return value.is_string() ? value.string() : canonical_text(value);
        });
    matrix.rows.push_back(
        {element("code", "", escaped(column)), element("code", "", escaped(values))});
  }
  const SweepPoints& points = page.sweep.points();
  return "<p>" + escaped(origins_text(points)) + ": " + whole(points.size()) + " points.</p>\n" +
         html::table(matrix) +
         html::scenario_details("The whole scenario, with the origin of each value",
                                resolved_text(page.sweep.written()));
}

}  // namespace

std::string sweep_page(const Sweep& sweep, const PartRows& rows,
                       const std::filesystem::path& directory, const std::string& version) {
  const SweepContent content(sweep, rows);
  std::string points;
  for (const Row* row : content.shown) points += (points.empty() ? "" : ",\n") + row->line;
  HtmlPage page{"sweep", sweep.name(), headline(content)};
  page.add("curves", "Curves", "Curves", curves(content));
  page.add("time", "Time", "Where the time goes", time_section(content));
  page.add("points", "Points", "Points", point_section(content));
  page.add("failed", "Failed", "Points that failed", failure_section(content));
  page.add("inputs", "Inputs", "Inputs and their sources", input_section(content));
  page.add("scenario", "Scenario", "Scenario and its sweep", scenario_section(content));
  const auto explained = [](const ExplainedPoint& each) {
    return object_of({{"point", each.point},
                      {"iteration_time_s", *each.report.find("iteration_time_s")},
                      {"breakdown_s", *each.report.find("breakdown_s")}});
  };
  page.data = {{"report", sweep_json(sweep, rows, directory)},
               {"sweep-points", "[" + points + "]"},
               {"explained", canonical_text(array_of(content.explained, explained))}};
  page.footer = escaped(version) + " · sweep " + escaped(sweep.hash()) +
                " · the same numbers: <code>windtunnel sweep --json</code> and " +
                escaped((directory / "results.jsonl").string());
  return html_document(page);
}

}  // namespace windtunnel
