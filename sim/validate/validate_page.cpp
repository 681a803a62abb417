#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "report/html_page.hpp"
#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"
#include "validate/metrics.hpp"
#include "validate/scatter_svg.hpp"
#include "validate/validation_report.hpp"

namespace windtunnel {
namespace {

using html::card;
using html::element;
using html::escaped;
using html::number;
using html::Table;

constexpr std::size_t worst_iterations = 12, worst_collectives = 6;  // named on the page

std::string whole(std::size_t count) { return grouped_text(static_cast<double>(count)); }

/// A row of the document's list of points, and where it stands there.
struct PointRow {
  const ValidatedSet* set = nullptr;
  const ScoredRow* comparison = nullptr;
  std::string pointer;
};

std::vector<PointRow> rows_of(const std::vector<ValidatedSet>& sets) {
  std::vector<PointRow> rows;
  for (const ValidatedSet& set : sets)
    for (const ScoredRow& comparison : set.comparisons)
      rows.push_back({&set, &comparison, "/points/" + std::to_string(rows.size()) + "/"});
  return rows;
}

Table point_table(const std::string& caption, const std::vector<PointRow>& rows) {
  Table table{caption,
              {"point", "too short | too long", "set", "measured", "predicted", "error"},
              {},
              "lllr",
              "bars points"};
  double largest = 0;
  for (const PointRow& row : rows) largest = std::max(largest, std::abs(row.comparison->error()));
  for (const PointRow& row : rows)
    table.rows.push_back(
        {escaped(row.comparison->id),
         html::signed_bar(row.comparison->error(), largest, "short", "long",
                          signed_percent_text(row.comparison->error())),
         escaped(row.set->name),
         number(row.pointer + "measured_s", to_text(row.comparison->measured)),
         number(row.pointer + "predicted_s", to_text(row.comparison->predicted)),
         number(row.pointer + "error", signed_percent_text(row.comparison->error()))});
  return table;
}

std::string overrides_paragraph(const std::vector<ValidatedSet>& sets) {
  std::string list;
  if (!sets.empty())  // all are changed alike
    for (const std::string& override : sets.front().overrides)
      list += (list.empty() ? "" : ", ") + escaped(override);
  if (list.empty()) return "";
  return "<p class=\"job\">With " + list +
         " over every point: not the score of the shipped files.</p>\n";
}

std::string headline(const std::vector<ValidatedSet>& sets) {
  std::size_t points = 0, scored = 0, skipped = 0;
  for (const ValidatedSet& set : sets) {
    points += set.num_points;
    scored += set.comparisons.size();
    skipped += set.skipped.size();
  }
  const std::vector<ScoredRow> iterations = iterations_of(sets);
  std::string html =
      "<header class=\"hero\">\n<div>\n<p class=\"kicker\">predicted against measured</p>\n";
  if (iterations.empty()) {
    html += "<h1><span class=\"big\">" + whole(scored) + "</span> times compared</h1>\n";
    return html + "</div>\n</header>\n";
  }
  const Score all = score(iterations);
  const auto within = [&](double limit) {
    return static_cast<std::size_t>(
        std::count_if(iterations.begin(), iterations.end(),
                      [&](const ScoredRow& row) { return std::abs(row.error()) <= limit; }));
  };
  constexpr double close = 0.05, near = 0.10;
  html += "<h1><span class=\"big\">" + number("/iterations/mape", percent_text(all.mape)) +
          "</span> mean error</h1>\n";
  html += "<p class=\"interval\"><span>over " + number("/iterations/scored", whole(all.scored)) +
          " measured iterations, none left out; errors count without their "
          "sign</span></p>\n";
  html += "<p class=\"job\">" + whole(within(close)) + " of them within 5 %, " +
          whole(within(near)) + " within 10 %. " +
          (all.bias < 0 ? "On the whole, predictions are too short."
                        : "On the whole, predictions are too long.") +
          "</p>\n" + overrides_paragraph(sets) + "</div>\n<div class=\"cards\">\n";
  html += card("median", number("/iterations/median_ape", percent_text(all.median_ape)),
               "half are closer");
  html += card("90th percentile", number("/iterations/p90_ape", percent_text(all.p90_ape)),
               "nine of ten are closer");
  html +=
      card("worst", number("/iterations/worst_ape", percent_text(all.worst_ape)), "named below");
  html += card("bias", number("/iterations/bias", signed_percent_text(all.bias)),
               "mean error with its sign");
  html += card("sets", whole(sets.size()), whole(points) + " points");
  html += card("not compared", whole(skipped), "listed below, with the reason");
  return html + "</div>\n</header>\n";
}

/// The rows of sets of one kind, the largest error first.
std::string worst_table(std::vector<PointRow> rows, MeasurementKind kind, const char* title,
                        std::size_t limit) {
  std::erase_if(rows, [&](const PointRow& row) { return row.set->kind != kind; });
  if (rows.empty()) return "";
  std::stable_sort(rows.begin(), rows.end(), [](const PointRow& a, const PointRow& b) {
    return std::abs(a.comparison->error()) > std::abs(b.comparison->error());
  });
  if (rows.size() > limit) rows.resize(limit);
  return element("h3", "", title) + "\n" + html::table(point_table(title, rows));
}

std::string optional_number(const std::string& pointer, std::optional<double> value) {
  return value ? number(pointer, percent_text(*value)) : "";
}

std::string set_table(const std::vector<ValidatedSet>& sets) {
  Table table{"Score of every set",
              {"set", "measured on", "scored", "mean", "median", "worst", "bias", "one constant",
               "inside interval", "memory"},
              {},
              "llr",
              "sets"};
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const ValidatedSet& set = sets[i];
    const std::string at = "/sets/" + std::to_string(i) + "/";
    std::vector<std::string> row{"<b>" + escaped(set.name) + "</b>", escaped(set.citation),
                                 number(at + "scored", whole(set.comparisons.size())) + " of " +
                                     number(at + "points", whole(set.num_points))};
    if (set.comparisons.empty()) {
      row.resize(row.size() + 5);
    } else {
      const Score all = score(set.comparisons);
      row.insert(row.end(), {number(at + "mape", percent_text(all.mape)),
                             number(at + "median_ape", percent_text(all.median_ape)),
                             number(at + "worst_ape", percent_text(all.worst_ape)),
                             number(at + "bias", signed_percent_text(all.bias)),
                             number(at + "naive_mape", percent_text(naive_mape(set.comparisons)))});
    }
    row.push_back(optional_number(at + "interval_coverage", interval_coverage(set.comparisons)));
    row.push_back(set.has_scores()
                      ? optional_number(at + "memory_mape", find_metric("memory_mape")->of(set))
                      : "");
    table.rows.push_back(std::move(row));
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
  const std::vector<PointRow> rows = rows_of(sets);
  HtmlPage page{"validate", "Predicted against measured", headline(sets)};
  if (!rows.empty()) {
    page.add("plot", "Plot", "Predicted against measured",
             "<p class=\"quiet\">Each point is one measured run; on the dashed line the prediction "
             "is exact. Rest the pointer on one for its name.</p>\n<div class=\"scroll\" "
             "tabindex=\"0\" role=\"region\" aria-label=\"Scatter plot\">" +
                 scatter_svg(sets, ScatterStyle::of_page) + "</div>\n");
    page.add("worst", "Worst rows", "The worst rows",
             worst_table(rows, MeasurementKind::iteration, "Iterations", worst_iterations) +
                 worst_table(rows, MeasurementKind::collective, "Collectives", worst_collectives));
  }
  page.add("sets", "Sets", "Sets",
           "<p class=\"quiet\">Errors without sign, as a mean over all rows of the set. One "
           "constant: the error of one constant efficiency times the ideal pipeline bubble, fitted "
           "on the same rows, which every model must clear.</p>\n" +
               set_table(sets));
  page.add("skipped", "", "Not compared", skipped_table(sets));
  if (!rows.empty())
    page.add("all", "Every row", "Every row",
             "<details><summary>All " + whole(rows.size()) +
                 " rows, in the order of the files</summary>\n" +
                 html::table(point_table("All rows", rows)) + "</details>\n");
  page.data = {{"report", validation_json(sets)}};
  page.footer =
      "windtunnel " WINDTUNNEL_VERSION " · windtunnel validate --json prints the same numbers";
  return html_document(page);
}

}  // namespace windtunnel
