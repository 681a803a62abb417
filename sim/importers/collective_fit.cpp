#include "importers/collective_fit.hpp"

#include <numeric>
#include <set>
#include <string_view>

#include "core/mapped.hpp"
#include "cost/collective_cost.hpp"
#include "platform/network.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using Role = FittedTime::Role;

constexpr Bytes smallest_modelled = 1_MiB;  ///< docs/model.md
constexpr double floor_band = 1.1;          ///< of the shortest time: counts as the floor
constexpr double search_range = 30;         ///< constants lie within this factor of the start
constexpr double least_sensitivity = 1e-3;  ///< of a time to a constant, summed over all
constexpr Bytes least_half_size{1024.0};    ///< smaller ones are switched off

using Constant = FittedConstant<Interconnect>;

RingKind ring_kind_of(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce       ? RingKind::all_reduce
         : kind == CollectiveKind::reduce_scatter ? RingKind::reduce_scatter
                                                  : RingKind::all_gather;
}

Seconds predict(const Interconnect& interconnect, const FittedTime& time) {
  std::vector<int> gpus(static_cast<std::size_t>(time.ranks));
  std::iota(gpus.begin(), gpus.end(), 0);
  return in_node_collective(interconnect, gpus, time.bytes, ring_kind_of(time.collective));
}

Constant constant(std::string key, double start, std::function<void(Interconnect&, double)> set) {
  return {std::move(key), std::move(set), start, start / search_range, start * search_range};
}

std::vector<Constant> constants_of(const Interconnect& base, bool several_sizes) {
  std::vector<Constant> constants;
  constants.push_back(
      constant("saturated_bandwidth", base.saturated_bandwidth / 1_GBps,
               [](Interconnect& i, double x) { i.saturated_bandwidth = BytesPerSecond{x * 1e9}; }));
  if (several_sizes) {
    constants.push_back(
        constant("floor_base", std::max(base.floor_base / 1_us, 0.1),
                 [](Interconnect& i, double x) { i.floor_base = Seconds{x * 1e-6}; }));
    constants.push_back(
        constant("floor_per_gpu", std::max(base.floor_per_gpu / 1_us, 0.1),
                 [](Interconnect& i, double x) { i.floor_per_gpu = Seconds{x * 1e-6}; }));
    if (base.kind != Interconnect::Kind::mesh) {
      constexpr double usual_loss = 0.5, least_loss = 1e-2, most_loss = 5;
      const double start = base.group_loss > 0 ? base.group_loss : usual_loss;
      constants.push_back({"group_loss", [](Interconnect& i, double x) { i.group_loss = x; },
                           std::clamp(start, least_loss, most_loss), least_loss, most_loss});
    }
  } else {
    constants.push_back(constant("floor_base", 1, [base](Interconnect& i, double x) {
      i.floor_base = base.floor_base * x;
      i.floor_per_gpu = base.floor_per_gpu * x;
    }));
  }
  if (base.half_size >= least_half_size) {
    constants.push_back(constant("half_size", base.half_size / 1_MiB,
                                 [](Interconnect& i, double x) { i.half_size = 1_MiB * x; }));
    constexpr double least_sharpness = 0.2, most_sharpness = 4;
    constants.push_back({"sharpness", [](Interconnect& i, double x) { i.sharpness = x; },
                         std::clamp(base.sharpness, least_sharpness, most_sharpness),
                         least_sharpness, most_sharpness});
  }
  if (base.switch_size > Bytes{0})
    constants.push_back(
        constant("small_bandwidth", base.small_bandwidth / 1_GBps,
                 [](Interconnect& i, double x) { i.small_bandwidth = BytesPerSecond{x * 1e9}; }));
  return constants;
}

constexpr double trusted_extrapolation = 1.1;  ///< a limit this far above what was seen is none

/// The traffic of a run's collective at one size: out of a node, and in it.
struct Crossing {
  std::string algorithm;
  Bytes volume{};
  Seconds in_node{};
};

Crossing crossing_of(const NcclRun& run, const Platform& base, Bytes payload, int cards) {
  const NodeType& node = base.node_types.front();
  const Interconnect& wires = node.interconnect;
  // The members of the first node, or NVLink domain.
  const int trays = std::min(run.nodes, base.domain_nodes);
  std::vector<int> gpus;
  for (int tray = 0; tray < trays; ++tray)
    for (int gpu = 0; gpu < run.ranks / run.nodes; ++gpu)
      gpus.push_back(tray * base.node_types.front().gpus + gpu);
  const int nodes = (run.nodes + base.domain_nodes - 1) / base.domain_nodes;
  const auto n = static_cast<double>(run.ranks), here = static_cast<double>(gpus.size());
  if (run.collective == CollectiveKind::all_to_all) {
    const BytesPerSecond inside = wires.all_to_all > BytesPerSecond{0}
                                      ? wires.all_to_all
                                      : saturated_bus_bandwidth(wires, gpus);
    return {"pairwise", payload * (here * (n - here) / n), payload * ((here - 1) / n) / inside};
  }
  if (run.collective != CollectiveKind::all_reduce)
    return {"a ring", ring_all_reduce_volume(payload, run.ranks) / 2,
            in_node_ring(wires, gpus, payload, ring_kind_of(run.collective))};
  CrossingTask task{
      payload,
      run.ranks,
      nodes,
      node.effective_nic_rate() * cards,
      cards,
      base.fabric.collective_latency,
      hop_in_node(wires),
      [&](Bytes bytes) { return in_node_ring(wires, gpus, bytes, RingKind::all_reduce); },
      {},
      wires.switch_channels,
      links_of(node, gpus)};
  if (reduces_in_switch(wires, gpus.size()))
    task.in_switch = [&](Bytes bytes) {
      return in_switch_all_reduce(wires, gpus.size(), bytes, nodes);
    };
  const NodeCrossing taken = crossing(task, run.is_always_ring ? "ring" : "");
  const std::string algorithm(taken.algorithm);
  return {(algorithm == "NVLS tree" ? "an " : "a ") + algorithm, taken.volume, taken.in_node};
}

}  // namespace

const char* nccl_name_of(CollectiveKind collective) {
  constexpr std::array names{"all_reduce", "all_gather", "reduce_scatter", "alltoall"};
  return names[static_cast<std::size_t>(collective)];
}

int num_fitted_sizes(const NcclRun& run) {
  return static_cast<int>(std::ranges::count_if(
      run.times, [](const CollectiveTime& time) { return time.bytes >= smallest_modelled; }));
}

InterconnectFit fit_interconnect(const Interconnect& base, const std::vector<NcclRun>& runs) {
  InterconnectFit result;
  std::set<int> sizes;
  for (const NcclRun& run : runs) {
    sizes.insert(run.ranks);
    const Seconds shortest = std::ranges::min(run.times, {}, &CollectiveTime::time).time;
    for (const CollectiveTime& time : run.times)
      result.times.push_back({run.ranks,
                              run.collective,
                              time.bytes,
                              time.time,
                              {},
                              time.bytes >= smallest_modelled      ? Role::fitted
                              : time.time <= shortest * floor_band ? Role::floor
                                                                   : Role::not_modelled});
  }
  // The floor counts as one time, however many sizes show it.
  const auto num_floor = std::ranges::count(result.times, Role::floor, &FittedTime::role);
  const auto weight = [&](const FittedTime& time) {
    return time.role == Role::fitted  ? 1.0
           : time.role == Role::floor ? 1.0 / static_cast<double>(num_floor)
                                      : 0.0;
  };
  const std::vector<Constant> constants = constants_of(base, sizes.size() > 1);
  ConstantSearch<Interconnect> search(base, constants, mapped(result.times, weight),
                                      [&result](const Interconnect& candidate) {
                                        return mapped(result.times, [&](const FittedTime& time) {
                                          return std::log(predict(candidate, time) / time.measured);
                                        });
                                      });
  // From starts whose bandwidth and half size are larger and smaller than the base's.
  const RobustFit fit = search.best_fit(
      {1.0, 0.3, 3.0}, {1.0, 0.2, 5.0}, [](const std::string& key, double bandwidth, double half) {
        return key == "half_size" ? half : key.ends_with("bandwidth") ? bandwidth : 1.0;
      });
  std::vector<double> values = fit.values;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    std::vector<double> as_in_base = values;
    as_in_base[i] = constants[i].start;
    const bool is_fitted = total(fit.sensitivities[i]) >= least_sensitivity;
    const bool is_kept =
        !is_fitted && search.misfit(as_in_base) <= search.misfit(values) + least_sensitivity;
    (is_fitted ? result.fitted
     : is_kept ? result.kept
               : result.bounded)
        .push_back(constants[i].key);
    if (is_kept) values = as_in_base;
  }
  result.interconnect = search.with(values);
  std::vector<double> errors;
  for (FittedTime& time : result.times) {
    time.fitted = predict(result.interconnect, time);
    if (time.role == Role::fitted) errors.push_back(time.error());
  }
  if (!errors.empty()) result.error = score_errors(errors);
  return result;
}

BusBandwidthFit fit_bus_bandwidth(const NcclRun& run) {
  Interconnect form;
  form.kind = Interconnect::Kind::nvswitch;
  BusBandwidthFit result;
  const double factor = bus_factor(run.collective, run.ranks);
  for (const CollectiveTime& time : run.times)
    result.largest_measured = std::max(result.largest_measured, time.bytes * factor / time.time);
  result.num_times = num_fitted_sizes(run);
  if (result.num_times < least_sizes) return result;
  form.saturated_bandwidth = result.largest_measured;
  form.floor_base = run.times.front().time;
  form.half_size = 16_MiB;
  const InterconnectFit fit = fit_interconnect(form, {run});
  result.saturated = fit.interconnect.saturated_bandwidth;
  for (const FittedTime& time : fit.times) {
    if (time.role != Role::fitted) continue;
    result.mean_error += std::abs(time.error()) / result.num_times;
  }
  return result;
}

JsonValue amount_text(double number, const char* unit) {
  return JsonValue(significant_text(number, fitted_digits) + " " + unit);
}

JsonValue ratio_number(double ratio) {
  return JsonValue(std::stod(significant_text(ratio, fitted_digits)));
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
  const auto is_fitted = [&](const std::string& key) {
    return std::ranges::count(fit.fitted, key) + std::ranges::count(fit.bounded, key) > 0;
  };
  // Runs with one number of GPUs move both parts of the floor together.
  const bool one_size = found.floor_per_gpu != base.floor_per_gpu;
  const std::pair<const char*, JsonValue> constants[]{
      {"saturated_bandwidth", amount_text(found.saturated_bandwidth / 1_GBps, "GB/s")},
      {"group_loss", ratio_number(found.group_loss)},
      {"floor_base", amount_text(found.floor_base / 1_us, "us")},
      {"floor_per_gpu", amount_text(found.floor_per_gpu / 1_us, "us")},
      {"half_size", amount_text(found.half_size / 1_MiB, "MiB")},
      {"sharpness", ratio_number(found.sharpness)},
      {"small_bandwidth", amount_text(found.small_bandwidth / 1_GBps, "GB/s")}};
  for (const auto& [key, value] : constants)
    if (is_fitted(key) || (one_size && std::string_view(key) == "floor_per_gpu"))
      set_number(interconnect, key, value, source);
}

std::vector<std::pair<std::string, std::string>> shown_constants(const Interconnect& found) {
  return {{"saturated_bandwidth", to_text(found.saturated_bandwidth)},
          {"group_loss", significant_text(found.group_loss, fitted_digits)},
          {"floor_base", to_text(found.floor_base)},
          {"floor_per_gpu", to_text(found.floor_per_gpu)},
          {"half_size", to_text(found.half_size)},
          {"sharpness", significant_text(found.sharpness, fitted_digits)}};
}

std::string text_of(const Score& error) {
  return percent_text(error.mape) + " on average, " + percent_text(error.worst_ape) +
         " at most, over " + std::to_string(error.scored);
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
  const CollectiveTime& largest = *std::ranges::max_element(run.times, {}, &CollectiveTime::bytes);
  const Crossing crossing = crossing_of(run, base, largest.bytes, result.cards);
  result.algorithm = crossing.algorithm;
  const Bytes on_bus = largest.bytes * bus_factor(run.collective, run.ranks);
  result.is_bound_inside = largest.time <= crossing.in_node * inside_margin;
  // A run that does not fill its cards shows what it sent, a lower bound.
  const bool at_limit = result.is_saturated && !result.is_bound_inside;
  result.rate =
      (at_limit ? result.fit.saturated : result.fit.largest_measured) * (crossing.volume / on_bus);
  result.efficiency = result.rate / (node.nic_rate * result.cards);
  return result;
}

}  // namespace windtunnel
