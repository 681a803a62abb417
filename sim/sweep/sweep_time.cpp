#include <algorithm>

#include "core/json_number.hpp"
#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"
#include "sweep/points.hpp"
#include "sweep/sweep_content.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::detail {
namespace {

using html::escaped;
using html::number;
using html::of_data;
using html::section;

/// "512 GPUs, micro_batch 2"
std::string label_of(const SweepContent& page, const ExplainedPoint& explained) {
  const Row* row = page.row_of(explained.point);
  if (row == nullptr) return "point " + std::to_string(explained.point);
  const bool by_gpus = page.data && page.data->x_counts_gpus;
  std::string text = by_gpus ? grouped_text(figure(row->content, "gpus")) + " GPUs" : "";
  for (const std::string& column : page.sweep.points().columns())
    if (row->content.find(column) != nullptr && !(by_gpus && column == "/nodes"))
      text += (text.empty() ? "" : ", ") + short_name(column, page.sweep.points().columns()) + " " +
              text_at(row->content, column);
  return text;
}

std::string values_of_point(const SweepContent& page, std::size_t point) {
  const Row* row = page.row_of(point);
  return row == nullptr ? "" : page.values_of(row->content);
}

std::string breakdown_chart(const SweepContent& page) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < page.explained.size(); ++i) {
    const JsonValue& report = page.explained[i].report;
    const Seconds time{figure(report, "iteration_time_s")};
    std::vector<html::Piece> pieces;
    for (int k = 0; k < num_lines; ++k) {
      const std::string line = name_of(static_cast<Line>(k));
      const Seconds part{number_of(find_at(report, "/breakdown_s/" + line)).value_or(0)};
      if (part > 0_s)
        pieces.push_back(
            {part / time, line,
             with_spaces(line) + ": " + time_text(part, time) + ", " + percent_text(part / time)});
    }
    rows.push_back(
        {"<span class=\"name\" title=\"" + escaped(values_of_point(page, page.explained[i].point)) +
             "\">" + escaped(label_of(page, page.explained[i])) + "</span>",
         html::stacked_bar(pieces, "where the time of point " +
                                       std::to_string(page.explained[i].point) + " goes"),
         of_data("explained",
                 number("/" + std::to_string(i) + "/iteration_time_s", to_text(time)))});
  }
  rows.push_back(
      {"", html::axis(100, [](double share) { return fixed_text(share, 0) + " %"; }), ""});
  return html::table(
      {"Where the time goes, by point", {"", "", ""}, std::move(rows), "llr", "chart"});
}

/// What makes the lines of the best point so long.
std::string best_reasons(const SweepContent& page) {
  if (!page.has_best()) return "";
  const auto found =
      std::find_if(page.explained.begin(), page.explained.end(),
                   [&](const ExplainedPoint& each) { return each.point == page.best().point; });
  if (found == page.explained.end()) return "";
  const std::string at = "/" + std::to_string(found - page.explained.begin()) + "/breakdown_s/";
  const Seconds time{figure(found->report, "iteration_time_s")};
  std::vector<std::pair<Seconds, std::string>> lines;
  for (const JsonValue::Member& reason : found->reasons.object())
    lines.emplace_back(
        number_of(find_at(found->report, "/breakdown_s/" + reason.key)).value_or(0) * 1_s,
        reason.key);
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string items;
  for (const auto& [part, line] : lines)
    items += "<li><b>" + html::swatch(line) + escaped(with_spaces(line)) + ": " +
             of_data("explained", number(at + line, time_text(part, time))) + ", " +
             escaped(percent_text(part / time)) + "</b><p>" +
             escaped(text_at(found->reasons, line)) + "</p></li>\n";
  return "<h3>Why does the best point take this long?</h3>\n<ol class=\"why\">\n" + items +
         "</ol>\n";
}

}  // namespace

std::string time_section(const SweepContent& page) {
  if (page.explained.empty()) return "";
  std::string legend;
  for (int i = 0; i < num_lines; ++i) {
    const std::string line = name_of(static_cast<Line>(i));
    const bool is_there =
        std::any_of(page.explained.begin(), page.explained.end(), [&](const ExplainedPoint& each) {
          return number_of(find_at(each.report, "/breakdown_s/" + line)).value_or(0) > 0;
        });
    if (is_there) legend += "<span>" + html::swatch(line) + escaped(with_spaces(line)) + "</span> ";
  }
  return section({"time", "Where the time goes",
                  "<p class=\"quiet\">Shares of each iteration, on the GPUs that finish last; "
                  "behind each bar the iteration time." +
                      std::string(page.data ? " Along the axis of the curves, the fastest point "
                                              "that fits at each place."
                                            : "") +
                      "</p>\n<p class=\"legend\">" + legend + "</p>\n" + breakdown_chart(page) +
                      best_reasons(page)});
}

}  // namespace windtunnel::detail
