#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "job/job_result.hpp"
#include "job/job_words.hpp"
#include "report/html_page.hpp"
#include "report/html_text.hpp"
#include "report/svg_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using html::card;
using html::element;
using html::escaped;
using html::number;
using html::section;

constexpr double seconds_per_day = 86'400;

/// Colours of the page's style sheet.
const char* colour_of(Spent spent) {
  switch (spent) {
    case Spent::start:
      return "codec";
    case Spent::compute:
      return "compute";
    case Spent::noise:
      return "context_comm";
    case Spent::slower:
      return "tensor_comm";
    case Spent::evaluation:
      return "optimizer";
    case Spent::checkpoint:
      return "data_comm";
    case Spent::lost:
      return "pipeline_comm";
    case Spent::detection:
      return "embedding_sync";
    case Spent::restart:
      return "other";
    case Spent::idle:
      return "pipeline_bubble";
  }
  return "other";
}

std::string range_note(const std::string& pointer, const Spread& spread) {
  return "5th to 95th percentile " + number(pointer + "/p5", amount_text(spread.low)) + " to " +
         number(pointer + "/p95", amount_text(spread.high));
}

std::string spread_card(const char* label, const std::string& pointer, const Spread& spread,
                        const std::string& unit = "") {
  return card(label,
              number(pointer + "/median", amount_text(spread.median)) +
                  (unit.empty() ? "" : " " + escaped(unit)),
              range_note(pointer, spread));
}

std::string headline(const JobResult& result) {
  const Job& job = result.job;
  const double tokens = job.tokens_per_step * static_cast<double>(job.model.steps);
  std::string text = "<header class=\"hero\">\n<div>\n<p class=\"kicker\">" + escaped(result.name) +
                     "</p>\n<h1><span class=\"big\">" +
                     number("/days/median", amount_text(result.days.median)) +
                     "</span> days</h1>\n<p class=\"interval\"><span>90 of 100 runs take " +
                     number("/days/p5", amount_text(result.days.low)) + " to " +
                     number("/days/p95", amount_text(result.days.high)) + " days</span></p>\n";
  text += "<p class=\"job\">" + escaped(result.model_name) + " on " +
          number("/gpus", grouped_text(job.gpus)) + " GPUs (" + escaped(result.platform_name) +
          "): " + escaped(parameter_text(tokens)) + " tokens in " +
          number("/steps", grouped_text(static_cast<double>(job.model.steps))) + " steps of " +
          escaped(to_text(job.step_time)) + "<br>" + escaped(result.plan) + "</p>\n";
  if (result.enough_spares) text += "<p class=\"quiet\">" + escaped(spares_text(result)) + "</p>\n";
  text += "</div>\n<div class=\"cards\">\n";
  text += card("goodput", number("/goodput/median", percent_text(result.goodput.median)),
               "share of the time that trains at full speed and counts");
  text += card("failures", number("/failures/count/median", grouped_text(result.failures.median)),
               "5th to 95th percentile " +
                   number("/failures/count/p5", grouped_text(result.failures.low)) + " to " +
                   number("/failures/count/p95", grouped_text(result.failures.high)));
  if (result.cost) text += spread_card("cost", "/cost", *result.cost, job.block.price->currency);
  if (result.energy_mwh) text += spread_card("energy", "/energy_mwh", *result.energy_mwh, "MWh");
  if (result.tonnes_co2)
    text += spread_card("emissions", "/tonnes_co2", *result.tonnes_co2, "t CO2");
  return text + "</div>\n</header>\n";
}

std::string time_section(const JobResult& result) {
  std::vector<html::Piece> pieces;
  html::Table table{"Where the time went", {"what", "share", "days"}, {}, 1};
  for (std::size_t i = 0; i < num_spent; ++i) {
    const auto spent = static_cast<Spent>(i);
    const double share = result.mean_shares[i];
    if (share <= 0) continue;
    const std::string text = fixed_text(100 * share, 2) + " %";
    pieces.push_back({share, colour_of(spent), std::string(words_of(spent)) + " " + text});
    table.rows.push_back({html::swatch(colour_of(spent)) + escaped(words_of(spent)),
                          number(std::string("/mean_shares/") + name_of(spent), text),
                          escaped(amount_text(share * result.days.median))});
  }
  return section({"time", "Where the time goes",
                  html::stacked_bar(pieces, "Shares of the time of the job") + html::table(table)});
}

// A chart: everything in SVG user units.
constexpr double left = 70, top = 24, chart_width = 820, chart_height = 260;
constexpr double right_edge = left + chart_width, bottom = top + chart_height;

/// Lengths of all draws: how many end in each span of days.
std::string days_chart(const JobResult& result) {
  constexpr int num_bars = 41;
  std::vector<double> days;
  for (const JobDraw& draw : result.draws) days.push_back(days_of(draw));
  const auto [low, high] = std::minmax_element(days.begin(), days.end());
  const double least = *low, width = std::max(*high - *low, 1e-6);
  std::array<int, num_bars> counts{};
  for (const double each : days)
    ++counts[std::min<std::size_t>(num_bars - 1, std::size_t((each - least) / width * num_bars))];
  const double most = *std::max_element(counts.begin(), counts.end());
  std::string svg;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double each = chart_width / num_bars, height = chart_height * counts[i] / most;
    svg += "<rect x=\"" + svg_number(left + each * double(i) + 1) + "\" y=\"" +
           svg_number(bottom - height) + "\" width=\"" + svg_number(each - 2) + "\" height=\"" +
           svg_number(height) + "\" fill=\"#3d7cc0\"><title>" + std::to_string(counts[i]) +
           " draws</title></rect>\n";
  }
  svg += svg_rule(left, bottom, right_edge, bottom);
  constexpr int num_marks = 5;
  for (int i = 0; i < num_marks; ++i) {
    const double share = double(i) / (num_marks - 1);
    svg += svg_text(left + chart_width * share, bottom + 20, fixed_text(least + width * share, 1),
                    "text-anchor=\"middle\"");
  }
  svg += svg_text(left + chart_width / 2, bottom + 42, "days", "text-anchor=\"middle\"");
  for (const auto& [value, name] :
       {std::pair{result.days.low, "5th"}, std::pair{result.days.median, "median"},
        std::pair{result.days.high, "95th"}}) {
    const double x = left + chart_width * (value - least) / width;
    svg += svg_rule(x, top, x, bottom, "stroke-dasharray=\"4 3\"") +
           svg_text(x, top - 6, name, "text-anchor=\"middle\"");
  }
  return svg_chart("How long the draws take, in days", 920, 350, svg);
}

struct IntervalAxis {
  double low, high;  ///< seconds, on a logarithmic scale
  double x(double seconds) const {
    return left + chart_width * std::log(seconds / low) / std::log(high / low);
  }
};

/// Mean length by interval of checkpoints, with the formulas' intervals.
std::string interval_chart(const JobResult& result) {
  const auto& points = result.intervals->points;
  const double step = result.job.step_time / Seconds{1};
  const IntervalAxis axis{double(points.front().steps) * step, double(points.back().steps) * step};
  double least = points.front().mean_seconds, most = least;
  for (const IntervalPoint& point : points) {
    least = std::min(least, point.mean_seconds);
    most = std::max(most, point.mean_seconds);
  }
  const double span = std::max(most - least, 1e-6);
  const auto y = [&](double seconds) { return bottom - chart_height * (seconds - least) / span; };
  std::string line, svg;
  for (const IntervalPoint& point : points)
    line += svg_number(axis.x(double(point.steps) * step)) + "," +
            svg_number(y(point.mean_seconds)) + " ";
  svg +=
      "<polyline points=\"" + line + "\" fill=\"none\" stroke=\"#3d7cc0\" stroke-width=\"3\"/>\n";
  svg += svg_rule(left, bottom, right_edge, bottom) + svg_rule(left, top, left, bottom);
  for (const double share : {0.0, 0.5, 1.0}) {
    const double seconds = least + span * share;
    svg += svg_text(left - 8, y(seconds) + 4, fixed_text(seconds / seconds_per_day, 2),
                    "text-anchor=\"end\"");
  }
  constexpr int num_marks = 5;
  for (int i = 0; i < num_marks; ++i) {
    const double at = axis.low * std::pow(axis.high / axis.low, double(i) / (num_marks - 1));
    svg += svg_text(axis.x(at), bottom + 20, interval_text(Seconds{at}), "text-anchor=\"middle\"");
  }
  svg += svg_text(left + chart_width / 2, bottom + 42,
                  "interval between checkpoints; up: mean days", "text-anchor=\"middle\"");
  const double best = result.intervals->best_steps * step;
  std::string names;  // over all rules, which lie close
  double row = top + 10;
  for (const auto& [seconds, name] :
       {std::pair{best, "best, played"}, std::pair{*result.young / Seconds{1}, "Young"},
        std::pair{*result.daly / Seconds{1}, "Daly"}}) {
    if (seconds < axis.low || seconds > axis.high) continue;
    svg += svg_rule(axis.x(seconds), top, axis.x(seconds), bottom, "stroke-dasharray=\"4 3\"");
    names +=
        svg_text(axis.x(seconds) + 5, row,
                 std::string(name) + " " + interval_text(Seconds{seconds}), "class=\"over-rules\"");
    row += 18;
  }
  return svg_chart("Mean length of the job by interval of checkpoints", 920, 350, svg + names);
}

std::string checkpoint_section(const JobResult& result) {
  const Job& job = result.job;
  std::string text = "<p class=\"quiet\">A checkpoint has " + escaped(to_text(job.checkpoint)) +
                     "; training waits " + escaped(interval_text(to_seconds(job.model.stall))) +
                     " for it. This run has one every " +
                     escaped(interval_text(job.step_time * double(job.model.checkpoint_every))) +
                     ". The curve plays other intervals with the same failures.</p>\n";
  if (result.intervals && result.intervals->points.size() > 1) text += interval_chart(result);
  return section({"checkpoints", "How often to save", text});
}

std::string failure_section(const JobResult& result) {
  html::Table table{"Failures by part", {"part", "mean per run"}, {}, 1};
  for (std::size_t i = 0; i < num_failing_parts; ++i) {
    const std::string name = name_of(static_cast<FailingPart>(i));
    table.rows.push_back({escaped(name), number("/failures/mean_by_part/" + name,
                                                fixed_text(result.mean_failures[i], 1))});
  }
  return section({"failures", "What fails", html::table(table)});
}

std::string assumption_section(const JobResult& result) {
  html::Table table{
      "Numbers that the file leaves to windtunnel", {"what", "value", "source"}, {}, 3, "inputs"};
  for (const Assumption& each : result.job.assumptions)
    table.rows.push_back(
        {escaped(each.what), escaped(each.value),
         escaped((each.evidence == Evidence::measured ? "" : "assumed: ") + each.note)});
  return table.rows.empty() ? "" : section({"inputs", "Numbers not given", html::table(table)});
}

}  // namespace

std::string job_page(const JobResult& result) {
  HtmlPage page;
  page.kind = "job";
  page.title = result.name;
  page.places = {
      {"time", "Time"}, {"days", "Days"}, {"checkpoints", "Checkpoints"}, {"failures", "Failures"}};
  page.body = headline(result) + time_section(result) +
              section({"days", "How long it may take", days_chart(result)}) +
              checkpoint_section(result) + failure_section(result) + assumption_section(result);
  if (!result.job.assumptions.empty()) page.places.push_back({"inputs", "Numbers not given"});
  page.data = {{"report", job_json(result)}};
  page.footer = "windtunnel " WINDTUNNEL_VERSION " · windtunnel job --json prints the same numbers";
  return html_document(page);
}

}  // namespace windtunnel
