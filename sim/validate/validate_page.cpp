#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "core/text_list.hpp"
#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "report/report_view.hpp"
#include "validate/scatter_svg.hpp"
#include "validate/validation_report.hpp"

namespace windtunnel {
namespace {

using html::card;
using html::escaped;
using html::Table;

constexpr std::size_t worst_iterations = 12, worst_collectives = 6;  // named on the page

std::string whole(std::size_t count) { return grouped_text(static_cast<double>(count)); }

/// Where a point stands in the document.
std::string pointer_of(std::size_t point) { return "/points/" + std::to_string(point) + "/"; }

/// The points of the document with these numbers.
std::string point_table(const std::string& caption, const html::DataView& document,
                        const std::vector<std::size_t>& points) {
  Table table{caption,
              {"point", "too short | too long", "set", "measured", "predicted", "error"},
              {},
              "lllr",
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
         escaped(document.text(at + "set")), document.cell(at + "measured_s", html::text_of_time),
         document.cell(at + "predicted_s", html::text_of_time),
         document.cell(at + "error", signed_percent_text)});
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
              {"set", "measured on", "scored", "mean", "median", "worst", "bias", "one constant",
               "inside interval", "memory"},
              {},
              "llr",
              "sets"};
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const std::string at = "/sets/" + std::to_string(i) + "/";
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {"<b>" + escaped(sets[i].name) + "</b>", escaped(sets[i].citation),
           document.cell(at + "scored", grouped_text) + " of " +
               document.cell(at + "points", grouped_text)};
    for (const std::string key : {"mape", "median_ape", "worst_ape", "bias", "naive_mape",
                                  "interval_coverage", "memory_mape"})
      row.push_back(document.cell(at + key, key == "bias" ? signed_percent_text : percent_text));
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
                         "point for its name.") +
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
