#include <string>

#include "core/json_build.hpp"
#include "core/json_value.hpp"
#include "noise/step_series.hpp"
#include "report/number_text.hpp"
#include "report/seed_value.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr int label_width = 28, figure_width = 10;

std::string line(const std::string& label, const std::string& figure,
                 const std::string& note = "") {
  std::string text = "  " + left_aligned(label, label_width) + right_aligned(figure, figure_width);
  if (!note.empty()) text += "   " + note;
  return text + "\n";
}

std::string time_line(const std::string& label, Seconds time, Seconds median) {
  constexpr int decimals = 4;
  return line(label, to_text(time), fixed_text(time / median, decimals) + " of the median");
}

/// Two decimals, since shares of few in a thousand are what one looks for.
std::string share_line(const std::string& label, double share) {
  constexpr double percent = 100;
  return line(label, fixed_text(share * percent, 2) + " %");
}

JsonValue seconds(Seconds time) { return JsonValue(time / Seconds{1}); }

}  // namespace

std::string steps_text(const StepSeries& series) {
  const StepStatistics found = statistics_of(series.times);
  std::string text = series.name + ": " + grouped_text(static_cast<double>(series.times.size())) +
                     (series.times.size() == 1 ? " step on " : " steps on ") +
                     grouped_text(series.num_gpus) + " GPUs with noise \"" + series.noise_name +
                     "\", seed " + std::to_string(series.seed) + "\n\n";
  text += line("without noise", to_text(series.without_noise));
  text += line("median", to_text(found.median),
               signed_percent_text(found.median / series.without_noise - 1) + " by noise");
  text += line("mean", to_text(found.mean),
               signed_percent_text(found.mean / series.without_noise - 1) + " by noise");
  text += time_line("5th percentile", found.p5, found.median);
  text += time_line("95th percentile", found.p95, found.median);
  text += time_line("99th percentile", found.p99, found.median);
  text += time_line("slowest", found.most, found.median);
  text += share_line("steps above 1.02 x median", found.above_1_02);
  text += share_line("steps above 1.05 x median", found.above_1_05);
  text += share_line("steps above 1.2 x median", found.above_1_2);
  text += line("correlation with next step", fixed_text(found.lag1_correlation, 2));
  if (!series.sources.empty()) text += "\nNumbers of the noise\n";
  for (const auto& [key, source] : series.sources)
    text += "  " + left_aligned(key, label_width) + name_of(source.evidence) + ": " + source.text +
            "\n";
  return text;
}

std::string steps_json(const StepSeries& series) {
  const StepStatistics found = statistics_of(series.times);
  JsonValue json(JsonValue::Object{});
  json.set("schema", JsonValue(std::string("windtunnel/steps-v1")));
  json.set("name", JsonValue(series.name));
  json.set("version", JsonValue(std::string(WINDTUNNEL_VERSION)));
  json.set("scenario_hash", JsonValue(series.scenario_hash));
  json.set("seed", seed_value(series.seed));
  json.set("noise", JsonValue(series.noise_name));
  json.set("gpus", JsonValue(std::int64_t{series.num_gpus}));
  json.set("steps", JsonValue(static_cast<std::int64_t>(series.times.size())));
  json.set("without_noise_s", seconds(series.without_noise));
  json.set("median_s", seconds(found.median));
  json.set("mean_s", seconds(found.mean));
  json.set("p5_s", seconds(found.p5));
  json.set("p95_s", seconds(found.p95));
  json.set("p99_s", seconds(found.p99));
  json.set("min_s", seconds(found.least));
  json.set("max_s", seconds(found.most));
  json.set("share_above_1_02", JsonValue(found.above_1_02));
  json.set("share_above_1_05", JsonValue(found.above_1_05));
  json.set("share_above_1_2", JsonValue(found.above_1_2));
  json.set("lag1_correlation", JsonValue(found.lag1_correlation));
  json.set("times_s", array_of(series.times, seconds));
  return pretty_text(json);
}

std::string steps_csv(const StepSeries& series) {
  constexpr int digits = 9;
  std::string text = "step,time_s\n";
  for (std::size_t i = 0; i < series.times.size(); ++i)
    text += std::to_string(i) + "," + significant_text(series.times[i] / Seconds{1}, digits) + "\n";
  return text;
}

}  // namespace windtunnel
