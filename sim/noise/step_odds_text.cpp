#include <algorithm>
#include <string>
#include <vector>

#include "core/json_build.hpp"
#include "core/json_value.hpp"
#include "noise/step_odds.hpp"
#include "report/number_text.hpp"
#include "report/seed_value.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr std::size_t most_rows = 8;
constexpr int figure_width = 12;

std::string odds_table(const std::string& title, const std::vector<CriticalOdds>& list) {
  if (list.empty()) return {};
  std::string text = "\n" + title + "\n" + right_aligned("in steps", figure_width) +
                     right_aligned("of the time", figure_width) + "\n";
  for (std::size_t i = 0; i < std::min(most_rows, list.size()); ++i)
    text += right_aligned(percent_text(list[i].share_of_steps), figure_width) +
            right_aligned(percent_text(list[i].share_of_time), figure_width) + "  " + list[i].what +
            "\n";
  if (list.size() > most_rows)
    text += "  and " + std::to_string(list.size() - most_rows) + " more (--json)\n";
  return text;
}

/// A gain below zero is a loss: draws that made some passes faster are gone too.
std::string gain_line(const NoiseGain& gain, Seconds mean) {
  return right_aligned(signed_percent_text(-(gain.mean / mean)), figure_width) +
         right_aligned(signed_percent_text(-(gain.median / mean)), figure_width) + "  " +
         gain.what + "\n";
}

JsonValue odds_list(const std::vector<CriticalOdds>& list) {
  return array_of(list, [&](const CriticalOdds& odds) {
    JsonValue entry(JsonValue::Object{});
    entry.set("what", JsonValue(odds.what));
    entry.set("share_of_steps", JsonValue(odds.share_of_steps));
    entry.set("share_of_time", JsonValue(odds.share_of_time));
    return entry;
  });
}

}  // namespace

std::string odds_text(const StepOdds& odds) {
  const StepStatistics found = statistics_of(odds.series.times);
  std::string text = odds.series.name + ": " + to_text(found.mean) + " per step, mean of " +
                     grouped_text(static_cast<double>(odds.series.times.size())) +
                     " with noise \"" + odds.series.noise_name + "\", seed " +
                     std::to_string(odds.series.seed) + "; " + to_text(odds.series.without_noise) +
                     " without noise\n";
  text += odds_table("On the critical path", odds.work);
  text += odds_table("Whose kernels were on it", odds.nodes);
  if (odds.gains.empty()) return text;
  text += "\nThe same steps without\n" + right_aligned("mean", figure_width) +
          right_aligned("median", figure_width) + "\n";
  for (const NoiseGain& gain : odds.gains) text += gain_line(gain, found.mean);
  return text;
}

std::string odds_json(const StepOdds& odds) {
  const StepStatistics found = statistics_of(odds.series.times);
  JsonValue json(JsonValue::Object{});
  json.set("schema", JsonValue(std::string("windtunnel/step-odds-v1")));
  json.set("name", JsonValue(odds.series.name));
  json.set("version", JsonValue(std::string(WINDTUNNEL_VERSION)));
  json.set("scenario_hash", JsonValue(odds.series.scenario_hash));
  json.set("seed", seed_value(odds.series.seed));
  json.set("noise", JsonValue(odds.series.noise_name));
  json.set("steps", JsonValue(static_cast<std::int64_t>(odds.series.times.size())));
  json.set("without_noise_s", JsonValue(odds.series.without_noise / Seconds{1}));
  json.set("mean_s", JsonValue(found.mean / Seconds{1}));
  json.set("median_s", JsonValue(found.median / Seconds{1}));
  json.set("critical", odds_list(odds.work));
  json.set("critical_nodes", odds_list(odds.nodes));
  json.set("gains", array_of(odds.gains, [&](const NoiseGain& gain) {
             JsonValue entry(JsonValue::Object{});
             entry.set("without", JsonValue(gain.what));
             entry.set("mean_gain_s", JsonValue(gain.mean / Seconds{1}));
             entry.set("median_gain_s", JsonValue(gain.median / Seconds{1}));
             return entry;
           }));
  return pretty_text(json);
}

}  // namespace windtunnel
