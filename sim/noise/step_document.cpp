#include <algorithm>
#include <string>
#include <vector>

#include "core/json_build.hpp"
#include "noise/step_series.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_view.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using document::Document;
using document::figure;
using document::Words;

/// Two decimals, since shares of few in a thousand are what one looks for.
std::string small_share_text(double share) { return fixed_text(100 * share, 2) + " %"; }
std::string correlation_text(double correlation) { return fixed_text(correlation, 2); }

JsonValue steps_data(const StepSeries& series, const StepStatistics& found) {
  return object_of({{"schema", "windtunnel/steps-v1"},
                    {"name", series.name},
                    {"version", WINDTUNNEL_VERSION},
                    {"scenario_hash", series.scenario_hash},
                    {"seed", series.seed},
                    {"noise", series.noise_name},
                    {"gpus", series.num_gpus},
                    {"steps", series.times.size()},
                    {"without_noise_s", series.without_noise},
                    {"median_s", found.median},
                    {"mean_s", found.mean},
                    {"p5_s", found.p5},
                    {"p95_s", found.p95},
                    {"p99_s", found.p99},
                    {"min_s", found.least},
                    {"max_s", found.most},
                    {"share_above_1_02", found.above_1_02},
                    {"share_above_1_05", found.above_1_05},
                    {"share_above_1_2", found.above_1_2},
                    {"lag1_correlation", found.lag1_correlation},
                    {"times_s", array_of(series.times, json_of<Seconds>)}});
}

/// Times of the charts, a little beyond the fastest and the slowest step.
ChartAxis time_axis(const StepStatistics& found) {
  constexpr double around = 0.05, least = 1e-3;
  const Seconds margin = std::max((found.most - found.least) * around, found.median * least);
  return {(found.least - margin) / Seconds{1}, (found.most + margin) / Seconds{1}, seconds_mark,
          "time of a step"};
}

/// Every step, or of many the slowest and fastest of those that share a pixel.
Chart series_chart(const StepSeries& series, const StepStatistics& found) {
  constexpr std::size_t most_spans = 820;
  const std::size_t count = series.times.size(), spans = std::min(count, most_spans);
  Chart chart{"How long each step takes",
              Chart::Shape::line,
              {-0.5, static_cast<double>(count) - 0.5, number_mark, "step", false, {}, true},
              time_axis(found)};
  for (std::size_t span = 0; span < spans; ++span) {
    const std::size_t first = span * count / spans, end = (span + 1) * count / spans;
    const auto [fastest, slowest] =
        std::minmax_element(series.times.begin() + static_cast<std::ptrdiff_t>(first),
                            series.times.begin() + static_cast<std::ptrdiff_t>(end));
    chart.points.push_back({static_cast<double>(first), *fastest / Seconds{1}});
    if (end - first > 1)
      chart.points.push_back({static_cast<double>(first), *slowest / Seconds{1}});
  }
  chart.rules = {{found.median / Seconds{1}, "median", true},
                 {found.p95 / Seconds{1}, "95th percentile", true}};
  return chart;
}

Chart times_chart(const StepSeries& series, const StepStatistics& found) {
  constexpr std::size_t num_bars = 60;
  std::vector<double> times;
  for (const Seconds time : series.times) times.push_back(time / Seconds{1});
  Chart chart =
      histogram("How many steps take how long", times, time_axis(found), num_bars, "step");
  chart.rules = {{found.median / Seconds{1}, "median"},
                 {found.p95 / Seconds{1}, "95th percentile"},
                 {found.p99 / Seconds{1}, "99th percentile"}};
  return chart;
}

JsonValue odds_list(const std::vector<CriticalOdds>& list) {
  return array_of(list, [](const CriticalOdds& odds) {
    return object_of({{"what", odds.what},
                      {"share_of_steps", odds.share_of_steps},
                      {"share_of_time", odds.share_of_time}});
  });
}

document::Section odds_section(const JsonValue& data, const std::string& key,
                               const std::string& title, const std::vector<CriticalOdds>& list) {
  constexpr std::size_t most_rows = 8;
  document::Section section{key, title, title, {}};
  if (list.empty()) return section;
  document::Table table{"rrw", {{"in steps", "of the time", ""}}};
  for (std::size_t i = 0; i < std::min(most_rows, list.size()); ++i) {
    const std::string at = "/" + key + "/" + std::to_string(i) + "/";
    table.rows.push_back({figure(data, at + "share_of_steps", percent_text),
                          figure(data, at + "share_of_time", percent_text), list[i].what});
  }
  section.parts.emplace_back(std::move(table));
  if (list.size() > most_rows)
    section.parts.emplace_back("and " + std::to_string(list.size() - most_rows) + " more (--json)");
  return section;
}

}  // namespace

Document steps_document(const StepSeries& series) {
  const StepStatistics found = statistics_of(series.times);
  const JsonValue data = steps_data(series, found);
  const auto by_noise = [&](Seconds time) {
    return signed_percent_text(time / series.without_noise - 1) + " by noise";
  };
  const auto of_median = [&](Seconds time) {
    constexpr int decimals = 4;
    return fixed_text(time / found.median, decimals) + " of the median";
  };
  const auto time = [&](const char* pointer) { return figure(data, pointer, html::text_of_time); };
  const auto share = [&](const char* pointer) { return figure(data, pointer, small_share_text); };
  document::Section sources{"inputs", "Noise", "Numbers of the noise", {}};
  document::Table table{"lw", {{"what", "source"}}};
  for (const auto& [key, source] : series.sources)
    table.rows.push_back({key, std::string(name_of(source.evidence)) + ": " + source.text});
  if (!series.sources.empty()) sources.parts.emplace_back(std::move(table));
  return {data,
          "steps",
          series.name,
          {figure(data, "/steps", grouped_text) +
           (series.times.size() == 1 ? " step on " : " steps on ") +
           figure(data, "/gpus", grouped_text) + " GPUs with noise \"" + series.noise_name +
           "\", seed " + std::to_string(series.seed)},
          "median",
          {{"without noise", time("/without_noise_s")},
           {"median", time("/median_s"), by_noise(found.median)},
           {"mean", time("/mean_s"), by_noise(found.mean)},
           {"5th percentile", time("/p5_s"), of_median(found.p5)},
           {"95th percentile", time("/p95_s"), of_median(found.p95)},
           {"99th percentile", time("/p99_s"), of_median(found.p99)},
           {"slowest", time("/max_s"), of_median(found.most)},
           {"steps above 1.02 x median", share("/share_above_1_02")},
           {"steps above 1.05 x median", share("/share_above_1_05")},
           {"steps above 1.2 x median", share("/share_above_1_2")},
           {"correlation with next step",
            series.times.size() == 1 ? document::Words()
                                     : figure(data, "/lag1_correlation", correlation_text)}},
          {{"steps", "Steps", "One step after the other", {series_chart(series, found)}},
           {"spread", "Spread", "How often steps take how long", {times_chart(series, found)}},
           sources},
          "windtunnel run --steps --json"};
}

std::string steps_csv(const StepSeries& series) {
  constexpr int digits = 9;
  std::string text = "step,time_s\n";
  for (std::size_t i = 0; i < series.times.size(); ++i)
    text += std::to_string(i) + "," + significant_text(series.times[i] / Seconds{1}, digits) + "\n";
  return text;
}

Document odds_document(const StepOdds& odds) {
  const StepSeries& series = odds.series;
  const StepStatistics found = statistics_of(series.times);
  const JsonValue data = object_of({{"schema", "windtunnel/step-odds-v1"},
                                    {"name", series.name},
                                    {"version", WINDTUNNEL_VERSION},
                                    {"scenario_hash", series.scenario_hash},
                                    {"seed", series.seed},
                                    {"noise", series.noise_name},
                                    {"steps", series.times.size()},
                                    {"without_noise_s", series.without_noise},
                                    {"mean_s", found.mean},
                                    {"median_s", found.median},
                                    {"critical", odds_list(odds.work)},
                                    {"critical_nodes", odds_list(odds.nodes)},
                                    {"gains", array_of(odds.gains, [](const NoiseGain& gain) {
                                       return object_of({{"without", gain.what},
                                                         {"mean_gain_s", gain.mean},
                                                         {"median_gain_s", gain.median}});
                                     })}});
  document::Section gains{"gains", "Noise", "The same steps without", {}};
  // A gain below zero is a loss: draws that made some passes faster are gone too.
  document::Table table{"rrw", {{"mean", "median", ""}}};
  for (const NoiseGain& gain : odds.gains)
    table.rows.push_back({signed_percent_text(-(gain.mean / found.mean)),
                          signed_percent_text(-(gain.median / found.mean)), gain.what});
  if (!odds.gains.empty()) gains.parts.emplace_back(std::move(table));
  return {data,
          "explain",
          series.name,
          {figure(data, "/mean_s", html::text_of_time) + " per step, mean of " +
           figure(data, "/steps", grouped_text) + " with noise \"" + series.noise_name +
           "\", seed " + std::to_string(series.seed) + "; " +
           figure(data, "/without_noise_s", html::text_of_time) + " without noise"},
          "",
          {},
          {odds_section(data, "critical", "On the critical path of a step for at least 1 % of it",
                        odds.work),
           odds_section(data, "critical_nodes", "Whose kernels were on it for at least 1 %",
                        odds.nodes),
           gains},
          "windtunnel explain --steps --json"};
}

}  // namespace windtunnel
