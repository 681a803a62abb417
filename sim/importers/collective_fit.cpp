#include "importers/collective_fit.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "core/robust_fit.hpp"
#include "cost/collective_cost.hpp"
#include "importers/fitted_constants.hpp"

namespace windtunnel {
namespace {

using Role = FittedTime::Role;

constexpr Bytes smallest_modelled = 1_MiB;  ///< docs/model.md
constexpr double floor_band = 1.1;          ///< of the shortest time: counts as the floor
constexpr double search_range = 30;         ///< constants lie within this factor of the start
constexpr double least_sensitivity = 1e-3;  ///< of a time to a constant, summed over all
constexpr Bytes least_half_size{1024.0};    ///< smaller ones are switched off

using Constant = FittedConstant<Interconnect>;

Seconds predict(const Interconnect& interconnect, const FittedTime& time) {
  std::vector<int> gpus(static_cast<std::size_t>(time.ranks));
  std::iota(gpus.begin(), gpus.end(), 0);
  return time.collective == NcclCollective::all_reduce
             ? in_node_all_reduce(interconnect, gpus, time.bytes)
             : in_node_all_gather(interconnect, gpus, time.bytes);
}

/// The run's times, each with its role in the fit.
std::vector<FittedTime> times_of(const NcclRun& run) {
  Seconds shortest{std::numeric_limits<double>::infinity()};
  for (const CollectiveTime& time : run.times) shortest = std::min(shortest, time.time);
  std::vector<FittedTime> times;
  for (const CollectiveTime& time : run.times) {
    Role role = Role::fitted;
    if (time.bytes < smallest_modelled)
      role = time.time <= shortest * floor_band ? Role::floor : Role::not_modelled;
    times.push_back({run.ranks, run.collective, time.bytes, time.time, {}, role});
  }
  return times;
}

/// The floor counts as one time, however many sizes show it.
std::vector<double> weights_of(const std::vector<FittedTime>& times) {
  const auto num_floor = std::count_if(
      times.begin(), times.end(), [](const FittedTime& time) { return time.role == Role::floor; });
  std::vector<double> weights;
  for (const FittedTime& time : times)
    weights.push_back(time.role == Role::fitted  ? 1.0
                      : time.role == Role::floor ? 1.0 / static_cast<double>(num_floor)
                                                 : 0.0);
  return weights;
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

/// The problem of finding `constants` from `times`; all must outlive it.
FitProblem problem_of(const Interconnect& base, const std::vector<Constant>& constants,
                      const std::vector<FittedTime>& times) {
  return problem_of<Interconnect>(
      base, constants, weights_of(times), [&times](const Interconnect& candidate) {
        std::vector<double> residuals;
        for (const FittedTime& time : times)
          residuals.push_back(std::log(predict(candidate, time) / time.measured));
        return residuals;
      });
}

/// The best fit over starts whose half size and bandwidth are larger and smaller than the base's.
RobustFit best_fit(const FitProblem& problem, const std::vector<Constant>& constants) {
  return best_fit<Interconnect>(
      problem, constants, {1.0, 0.3, 3.0}, {1.0, 0.2, 5.0},
      [](const std::string& key, double bandwidth, double half) {
        return key == "half_size" ? half : key.ends_with("bandwidth") ? bandwidth : 1.0;
      });
}

/// Sum of weighted absolute residuals, to compare two choices of constants.
double misfit(const FitProblem& problem, const std::vector<double>& values) {
  const std::vector<double> residuals = problem.residuals(values);
  double sum = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i)
    sum += problem.weights[i] * std::abs(residuals[i]);
  return sum;
}

}  // namespace

int num_fitted_sizes(const NcclRun& run) {
  return static_cast<int>(
      std::count_if(run.times.begin(), run.times.end(),
                    [](const CollectiveTime& time) { return time.bytes >= smallest_modelled; }));
}

InterconnectFit fit_interconnect(const Interconnect& base, const std::vector<NcclRun>& runs) {
  InterconnectFit result;
  std::set<int> sizes;
  for (const NcclRun& run : runs) {
    sizes.insert(run.ranks);
    for (FittedTime& time : times_of(run)) result.times.push_back(time);
  }
  const std::vector<Constant> constants = constants_of(base, sizes.size() > 1);
  const FitProblem problem = problem_of(base, constants, result.times);
  const RobustFit fit = best_fit(problem, constants);
  std::vector<double> values = fit.values;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    if (total(fit.sensitivities[i]) >= least_sensitivity) {
      result.fitted.push_back(constants[i].key);
      continue;
    }
    std::vector<double> as_in_base = values;
    as_in_base[i] = constants[i].start;
    if (misfit(problem, as_in_base) > misfit(problem, values) + least_sensitivity) {
      result.bounded.push_back(constants[i].key);
    } else {
      result.kept.push_back(constants[i].key);
      values = as_in_base;
    }
  }
  result.interconnect = with(base, constants, values);
  for (FittedTime& time : result.times) time.fitted = predict(result.interconnect, time);
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

}  // namespace windtunnel
