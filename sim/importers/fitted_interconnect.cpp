#include "importers/fitted_interconnect.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "importers/base_platform.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr int written_digits = 4;
constexpr double trusted_extrapolation = 1.1;  ///< a limit this far above what was seen is none

/// Network cards that so many GPUs of a node use: GPU g has card floor(g * nics / gpus).
int cards_of(const NodeType& node, int gpus) {
  std::set<int> cards;
  for (int g = 0; g < gpus; ++g) cards.insert(g * node.nics / node.gpus);
  return static_cast<int>(cards.size());
}

}  // namespace

JsonValue amount_text(double number, const char* unit) {
  return JsonValue(significant_text(number, written_digits) + " " + unit);
}

JsonValue ratio_number(double ratio) {
  return JsonValue(std::stod(significant_text(ratio, written_digits)));
}

int num_fitted(const InterconnectFit& fit) {
  return static_cast<int>(
      std::count_if(fit.times.begin(), fit.times.end(),
                    [](const FittedTime& time) { return time.role == FittedTime::Role::fitted; }));
}

double mean_error(const InterconnectFit& fit) {
  double sum = 0;
  for (const FittedTime& time : fit.times)
    if (time.role == FittedTime::Role::fitted) sum += std::abs(time.error());
  return sum / num_fitted(fit);
}

double worst_error(const InterconnectFit& fit) {
  double worst = 0;
  for (const FittedTime& time : fit.times)
    if (time.role == FittedTime::Role::fitted) worst = std::max(worst, std::abs(time.error()));
  return worst;
}

std::string times_table(const InterconnectFit& fit) {
  std::string table = "  GPUs       size      measured        fitted      error\n";
  for (const FittedTime& time : fit.times)
    if (time.role == FittedTime::Role::fitted)
      table += right_aligned(std::to_string(time.ranks), 6) +
               right_aligned(to_text(time.bytes), 11) + right_aligned(to_text(time.measured), 14) +
               right_aligned(to_text(time.fitted), 14) +
               right_aligned(percent_text(time.error()), 11) + "\n";
  return table;
}

void write_constants(JsonValue& interconnect, const Interconnect& base, const InterconnectFit& fit,
                     const std::string& source) {
  const Interconnect& found = fit.interconnect;
  const auto is_fitted = [&](const char* key) {
    return std::count(fit.fitted.begin(), fit.fitted.end(), key) +
               std::count(fit.bounded.begin(), fit.bounded.end(), key) >
           0;
  };
  const auto set = [&](const char* key, JsonValue value) {
    set_number(interconnect, key, std::move(value), source);
  };
  if (is_fitted("saturated_bandwidth"))
    set("saturated_bandwidth", amount_text(found.saturated_bandwidth / 1_GBps, "GB/s"));
  if (is_fitted("group_loss")) set("group_loss", ratio_number(found.group_loss));
  if (is_fitted("floor_base")) set("floor_base", amount_text(found.floor_base / 1_us, "us"));
  const bool one_size = found.floor_per_gpu != base.floor_per_gpu && !is_fitted("floor_per_gpu");
  if (is_fitted("floor_per_gpu") || one_size)
    set("floor_per_gpu", amount_text(found.floor_per_gpu / 1_us, "us"));
  if (is_fitted("half_size")) set("half_size", amount_text(found.half_size / 1_MiB, "MiB"));
  if (is_fitted("sharpness")) set("sharpness", ratio_number(found.sharpness));
  if (is_fitted("small_bandwidth"))
    set("small_bandwidth", amount_text(found.small_bandwidth / 1_GBps, "GB/s"));
}

CardRate card_rate(const NcclRun& run, const NodeType& node) {
  CardRate result;
  result.fit = fit_bus_bandwidth(run);
  result.is_saturated = result.fit.num_times >= least_sizes &&
                        result.fit.saturated <= result.fit.largest_measured * trusted_extrapolation;
  result.rate = result.is_saturated ? result.fit.saturated : result.fit.largest_measured;
  result.cards = cards_of(node, run.ranks / run.nodes);
  result.efficiency = result.rate / (node.nic_rate * result.cards);
  return result;
}

}  // namespace windtunnel
