#include "importers/fitted_interconnect.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "cost/collective_cost.hpp"
#include "importers/base_platform.hpp"
#include "platform/nics.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr int written_digits = 4;
constexpr double trusted_extrapolation = 1.1;  ///< a limit this far above what was seen is none

/// What a run's collective sends out of a node, and does in it, at one size.
struct Crossing {
  std::string algorithm;
  Bytes volume{};
  Seconds in_node{};
};

/// The members of the first node, or NVLink domain.
std::vector<int> gpus_of_first(const NcclRun& run, const Platform& base) {
  const int trays = std::min(run.nodes, base.domain_nodes);
  std::vector<int> gpus;
  for (int tray = 0; tray < trays; ++tray)
    for (int gpu = 0; gpu < run.ranks / run.nodes; ++gpu)
      gpus.push_back(tray * base.node_types.front().gpus + gpu);
  return gpus;
}

Crossing crossing_of(const NcclRun& run, const Platform& base, Bytes payload, int cards) {
  const NodeType& node = base.node_types.front();
  const Interconnect& wires = node.interconnect;
  const std::vector<int> gpus = gpus_of_first(run, base);
  const int nodes = (run.nodes + base.domain_nodes - 1) / base.domain_nodes;
  const auto n = static_cast<double>(run.ranks), here = static_cast<double>(gpus.size());
  if (run.collective == NcclCollective::all_to_all) {
    const BytesPerSecond inside = wires.all_to_all > BytesPerSecond{0}
                                      ? wires.all_to_all
                                      : saturated_bus_bandwidth(wires, gpus);
    return {"pairwise", payload * (here * (n - here) / n), payload * ((here - 1) / n) / inside};
  }
  if (run.collective != NcclCollective::all_reduce)
    return {"a ring", ring_all_reduce_volume(payload, run.ranks) / 2,
            in_node_all_gather(wires, gpus, payload)};
  const CrossingTask task{payload,
                          run.ranks,
                          nodes,
                          wires.reduces_in_switch,
                          node.effective_nic_rate() * cards,
                          base.fabric.collective_latency,
                          [&](Bytes bytes) { return in_node_all_reduce(wires, gpus, bytes); }};
  const NodeCrossing ring = all_reduce_crossings(task).front();
  const NodeCrossing taken = run.is_always_ring ? ring : all_reduce_crossing(task);
  const char* tree = wires.reduces_in_switch ? "an NVLS tree" : "a tree";
  return {taken.hops == ring.hops && taken.volume == ring.volume ? "a ring" : tree, taken.volume,
          taken.in_node};
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

CardRate card_rate(const NcclRun& run, const Platform& base) {
  constexpr double inside_margin = 1.1;  // the constants inside are known to some 10 %
  const NodeType& node = base.node_types.front();
  CardRate result;
  result.fit = fit_bus_bandwidth(run);
  result.is_saturated = result.fit.num_times >= least_sizes &&
                        result.fit.saturated <= result.fit.largest_measured * trusted_extrapolation;
  std::vector<int> in_tray(static_cast<std::size_t>(run.ranks / run.nodes));
  std::iota(in_tray.begin(), in_tray.end(), 0);
  result.cards =
      static_cast<int>(nics_of(in_tray, node).size()) * std::min(run.nodes, base.domain_nodes);
  const CollectiveTime& largest = *std::max_element(
      run.times.begin(), run.times.end(),
      [](const CollectiveTime& a, const CollectiveTime& b) { return a.bytes < b.bytes; });
  const Crossing crossing = crossing_of(run, base, largest.bytes, result.cards);
  result.algorithm = crossing.algorithm;
  const Bytes on_bus = largest.bytes * bus_factor(run.collective, run.ranks);
  result.is_bound_inside = largest.time <= crossing.in_node * inside_margin;
  // What a run shows at least of cards that it does not fill is what it sent.
  const bool at_limit = result.is_saturated && !result.is_bound_inside;
  result.rate =
      (at_limit ? result.fit.saturated : result.fit.largest_measured) * (crossing.volume / on_bus);
  result.efficiency = result.rate / (node.nic_rate * result.cards);
  return result;
}

}  // namespace windtunnel
