#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "noise/step_series.hpp"
#include "report/html_page.hpp"
#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "report/svg_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using html::card;
using html::escaped;
using html::number;
using html::section;

// A chart: everything in SVG user units.
constexpr double left = 80, top = 24, chart_width = 820, chart_height = 240;
constexpr double right_edge = left + chart_width, bottom = top + chart_height;

/// Times of the charts, a little beyond the fastest and the slowest step.
struct TimeRange {
  Seconds low{}, high{};
  explicit TimeRange(const StepStatistics& found) {
    constexpr double around = 0.05, least = 1e-3;
    const Seconds margin = std::max((found.most - found.least) * around, found.median * least);
    low = found.least - margin;
    high = found.most + margin;
  }
  double share(Seconds time) const { return (time - low) / (high - low); }
  Seconds at(double share) const { return low + (high - low) * share; }
};

constexpr std::array quarters{0.0, 0.25, 0.5, 0.75, 1.0};

/// Every step, or of many the slowest and fastest of those that share a pixel.
std::string series_chart(const StepSeries& series, const StepStatistics& found) {
  const TimeRange range(found);
  const std::size_t count = series.times.size();
  const auto x = [&](std::size_t step) {
    return left + chart_width * static_cast<double>(step) /
                      static_cast<double>(std::max<std::size_t>(count - 1, 1));
  };
  const auto y = [&](Seconds time) { return bottom - chart_height * range.share(time); };
  constexpr std::size_t most_spans = 820;
  const std::size_t spans = std::min(count, most_spans);
  std::string line, svg;
  for (std::size_t span = 0; span < spans; ++span) {
    const std::size_t first = span * count / spans, end = (span + 1) * count / spans;
    const auto from = series.times.begin() + static_cast<std::ptrdiff_t>(first);
    const auto to = series.times.begin() + static_cast<std::ptrdiff_t>(end);
    const auto [fastest, slowest] = std::minmax_element(from, to);
    line += svg_number(x(first)) + "," + svg_number(y(*fastest)) + " ";
    if (end - first > 1) line += svg_number(x(first)) + "," + svg_number(y(*slowest)) + " ";
  }
  svg +=
      "<polyline points=\"" + line + "\" fill=\"none\" stroke=\"#3d7cc0\" stroke-width=\"1.5\"/>\n";
  svg += svg_rule(left, bottom, right_edge, bottom);
  for (const double share : quarters) {
    svg += svg_text(left - 8, bottom - chart_height * share + 4, to_text(range.at(share)),
                    "text-anchor=\"end\"");
    const double step = share * static_cast<double>(count - 1);
    svg += svg_text(left + chart_width * share, bottom + 20, grouped_text(step),
                    "text-anchor=\"middle\"");
  }
  for (const auto& [time, name] : {std::pair{found.median, "median"}, std::pair{found.p95, "95th"}})
    svg += svg_rule(left, y(time), right_edge, y(time), "stroke-dasharray=\"4 3\"") +
           svg_text(right_edge + 6, y(time) + 4, name, "");
  svg += svg_text(left + chart_width / 2, bottom + 42, "step", "text-anchor=\"middle\"");
  return svg_chart("How long each step takes", 1000, 320, svg);
}

std::string histogram(const StepSeries& series, const StepStatistics& found) {
  constexpr std::size_t num_bars = 60;
  const TimeRange range(found);
  std::array<int, num_bars> counts{};
  for (const Seconds time : series.times)
    ++counts[std::min(num_bars - 1, static_cast<std::size_t>(range.share(time) * num_bars))];
  const double most = *std::max_element(counts.begin(), counts.end());
  const double width = chart_width / num_bars;
  std::string svg;
  for (std::size_t i = 0; i < num_bars; ++i) {
    if (counts[i] == 0) continue;
    const double height = chart_height * counts[i] / most;
    svg += "<rect x=\"" + svg_number(left + width * static_cast<double>(i) + 1) + "\" y=\"" +
           svg_number(bottom - height) + "\" width=\"" + svg_number(width - 2) + "\" height=\"" +
           svg_number(height) + "\" fill=\"#3d7cc0\"><title>" + std::to_string(counts[i]) +
           " steps</title></rect>\n";
  }
  svg += svg_rule(left, bottom, right_edge, bottom);
  for (const double share : quarters)
    svg += svg_text(left + chart_width * share, bottom + 20, to_text(range.at(share)),
                    "text-anchor=\"middle\"");
  constexpr double row_height = 15;
  double row = top - 8;
  for (const auto& [time, name] :
       {std::pair{found.median, "median"}, std::pair{found.p95, "95th percentile"},
        std::pair{found.p99, "99th percentile"}}) {
    const double x = left + chart_width * range.share(time);
    svg += svg_rule(x, top - 4, x, bottom, "stroke-dasharray=\"4 3\"") +
           svg_text(x + 5, row, name, "");
    row += row_height;
  }
  svg += svg_text(left - 8, top + 4, std::to_string(static_cast<int>(most)), "text-anchor=\"end\"");
  svg += svg_text(left + chart_width / 2, bottom + 42, "time of a step; up: number of steps",
                  "text-anchor=\"middle\"");
  return svg_chart("How many steps take how long", 1000, 320, svg);
}

std::string headline(const StepSeries& series, const StepStatistics& found) {
  const auto over_median = [&](Seconds time) {
    return fixed_text(time / found.median, 4) + " of the median";
  };
  std::string text = "<header class=\"hero\">\n<div>\n<p class=\"kicker\">" + escaped(series.name) +
                     "</p>\n<h1><span class=\"big\">" + number("/median_s", to_text(found.median)) +
                     "</span> in half of the steps</h1>\n<p class=\"job\">" +
                     grouped_text(static_cast<double>(series.times.size())) + " steps on " +
                     number("/gpus", grouped_text(series.num_gpus)) + " GPUs with noise " +
                     escaped(series.noise_name) + "; without noise a step takes " +
                     number("/without_noise_s", to_text(series.without_noise)) +
                     "</p>\n</div>\n<div class=\"cards\">\n";
  text += card("mean", number("/mean_s", to_text(found.mean)),
               escaped(signed_percent_text(found.mean / series.without_noise - 1) + " by noise"));
  text += card("95th percentile", number("/p95_s", to_text(found.p95)), over_median(found.p95));
  text += card("99th percentile", number("/p99_s", to_text(found.p99)), over_median(found.p99));
  text += card("slowest", number("/max_s", to_text(found.most)), over_median(found.most));
  text += card("above 1.05 × median",
               number("/share_above_1_05", fixed_text(100 * found.above_1_05, 2) + " %"),
               "share of the steps");
  return text + "</div>\n</header>\n";
}

std::string source_section(const StepSeries& series) {
  html::Table table{"Numbers of the noise", {"what", "source"}, {}, 2, "inputs"};
  for (const auto& [key, source] : series.sources)
    table.rows.push_back(
        {escaped(key), escaped(std::string(name_of(source.evidence)) + ": " + source.text)});
  return table.rows.empty() ? ""
                            : section({"inputs", "Where the noise is from", html::table(table)});
}

}  // namespace

std::string steps_page(const StepSeries& series) {
  const StepStatistics found = statistics_of(series.times);
  HtmlPage page;
  page.kind = "steps";
  page.title = series.name;
  page.places = {{"steps", "Steps"}, {"spread", "Spread"}};
  page.body = headline(series, found) +
              section({"steps", "One step after the other", series_chart(series, found)}) +
              section({"spread", "How often steps take how long", histogram(series, found)}) +
              source_section(series);
  if (!series.sources.empty()) page.places.push_back({"inputs", "Noise"});
  page.data = {{"report", steps_json(series) + "\n"}};
  page.footer =
      "windtunnel " WINDTUNNEL_VERSION " · windtunnel run --steps --json prints the same numbers";
  return html_document(page);
}

}  // namespace windtunnel
