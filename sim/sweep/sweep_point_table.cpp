#include <algorithm>

#include "core/json_number.hpp"
#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "sweep/sweep_content.hpp"
#include "sweep/sweep_front.hpp"
#include "sweep/sweep_text.hpp"

namespace windtunnel::detail {
namespace {

using html::element;
using html::escaped;
using html::section;

/// A column of figures in the table: how the number is printed.
struct FigureColumn {
  const char *key, *title;
  double scale;
  int digits;
  const char* unit;
  const char* first;  ///< how the first click sorts
};

/// The unit that suits the longest iteration.
FigureColumn time_column(const SweepContent& page) {
  double longest = 0;
  for (const Row& row : page.ranked)
    longest = std::max(longest, figure(row.content, "iteration_time_s"));
  constexpr double ms = 1e-3, us = 1e-6;
  if (longest >= 1 || longest == 0)
    return {"iteration_time_s", "s/iteration", 1, 3, "s", "ascending"};
  if (longest >= ms) return {"iteration_time_s", "ms/iteration", ms, 3, "ms", "ascending"};
  return {"iteration_time_s", "us/iteration", us, 3, "us", "ascending"};
}

std::vector<FigureColumn> figure_columns(const SweepContent& page) {
  constexpr double percent = 0.01, gib = 1073741824, millionth = 1e-6;
  constexpr int digits = 3;
  std::vector<FigureColumn> columns{
      {"gpus", "GPUs", 1, 0, "", "ascending"},
      time_column(page),
      {"tokens_per_s", "tokens/s", 1, 0, "", "descending"},
      {"model_tflops_per_gpu", "TFLOP/s per GPU", 1, 1, "", "descending"},
      {"mfu", "MFU, %", percent, 1, "%", "descending"},
      {"memory_max_bytes", "memory, GiB", gib, 1, "GiB", "ascending"}};
  const Objective objective = page.sweep.choices().objective;
  if (objective == Objective::cost_per_token)
    columns.push_back(
        {"cost_per_token", "cost of 10^6 tokens", millionth, digits, "of a million", "ascending"});
  else if (!is_always_shown(objective))
    columns.push_back({name_of(objective), unit_of(objective), 1, digits, "", "ascending"});
  for (const std::string& figure : page.sweep.asked_figures()) {
    if (figure == "days" && objective != Objective::days)
      columns.push_back({"days", "days", 1, 1, "", "ascending"});
    if (figure == "cost") columns.push_back({"cost", "cost", 1, 0, "", "ascending"});
  }
  return columns;
}

std::string table_head(const SweepContent& page, const std::vector<FigureColumn>& figures) {
  std::string html =
      "<th data-key=\"point\" data-scale=\"1\" data-digits=\"0\" data-unit=\"\" "
      "class=\"n\">point</th>";
  for (const std::string& column : page.sweep.points().columns())
    html += "<th data-key=\"" + escaped(column) + "\">" + escaped(column) + "</th>";
  for (const FigureColumn& each : figures)
    html += "<th class=\"n\" data-key=\"" + std::string(each.key) + "\" data-scale=\"" +
            significant_text(each.scale, 17) + "\" data-digits=\"" + std::to_string(each.digits) +
            "\" data-unit=\"" + each.unit + "\" data-first=\"" + each.first + "\">" +
            escaped(each.title) + "</th>";
  if (page.sweep.choices().plan == JobPlan::best) html += "<th data-key=\"plan\">best plan</th>";
  html += "<th data-key=\"fits\">fits</th>";
  if (page.num_failed > 0) html += "<th data-key=\"error\">error</th>";
  return html;
}

std::string table_row(const SweepContent& page, std::size_t place,
                      const std::vector<FigureColumn>& figures) {
  const Row& row = page.ranked[place];
  const JsonValue& content = row.content;
  std::string html = row.ok && !fits(row) ? "<tr class=\"large\">" : "<tr>";
  html += "<td class=\"n\">" + point_number(place, "point", whole(row.point)) + "</td>";
  for (const std::string& column : page.sweep.points().columns())
    html += element("td", "", escaped(text_at(content, column)));
  for (const FigureColumn& each : figures) {
    const std::optional<double> value = number_of(content.find(each.key));
    const std::string text = !value             ? ""
                             : each.digits == 0 ? grouped_text(*value / each.scale)
                                                : fixed_text(*value / each.scale, each.digits);
    html +=
        element("td", "class=\"n\"", value ? point_number(place, each.key, text, each.unit) : "");
  }
  if (page.sweep.choices().plan == JobPlan::best)
    html += element("td", "", escaped(text_at(content, "plan")));
  html += element("td", "", !row.ok ? "" : fits(row) ? "yes" : "<strong class=\"bad\">NO</strong>");
  if (page.num_failed > 0)
    html += element("td", "class=\"error-text\"", escaped(text_at(content, "error")));
  return html + "</tr>\n";
}

}  // namespace

std::string point_section(const SweepContent& page) {
  if (page.ranked.empty())
    return section({"points", "Points", "<p>No point has been done yet.</p>\n"});
  const std::vector<FigureColumn> figures = figure_columns(page);
  std::string body;
  for (std::size_t i = 0; i < std::min(first_page_rows, page.ranked.size()); ++i)
    body += table_row(page, i, figures);
  std::string note = std::string(order_words(page.sweep.choices().objective)) +
                     " first; what does not fit in memory, then what failed, last.";
  if (page.rows.by_point.size() > page.ranked.size())
    note += " Of " + whole(page.rows.by_point.size()) + " points these are the first " +
            whole(page.ranked.size()) + "; results.csv has all.";
  std::vector<PricedPoint> priced;
  for (const FrontPoint& each : front_of(page.rows, page.sweep.points().columns()))
    priced.push_back(each.priced);
  return section(
      {"points", "Points",
       chart_svg(days_money_chart(priced)) + "<p class=\"quiet\">" + escaped(note) +
           "</p>\n<p class=\"quiet sort-hint\" hidden>Press a column's head to sort by it.</p>\n"
           "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Points\"><table "
           "class=\"points-table\" data-shown=\"" +
           std::to_string(first_page_rows) + "\">\n<thead><tr>" + table_head(page, figures) +
           "</tr></thead>\n<tbody>\n" + body + "</tbody></table></div>\n"});
}

}  // namespace windtunnel::detail
