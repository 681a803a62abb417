#include "importers/probe_fit.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "core/contracts.hpp"
#include "core/robust_fit.hpp"
#include "cost/kernel_cost.hpp"
#include "importers/fitted_constants.hpp"

namespace windtunnel {
namespace {

constexpr int least_products = 8;           ///< for three constants
constexpr double least_sensitivity = 1e-2;  ///< of the times to a constant, summed over all
constexpr double near_bound = 0.999;

using Constant = FittedConstant<Device>;

Constant constant(std::string key, double start, double lower, double upper,
                  std::function<void(Device&, double)> set) {
  return {std::move(key), std::move(set), std::clamp(start, lower, upper), lower, upper};
}

bool has(const std::vector<ProbeMeasurement>& used, ProbeKind kind, std::ptrdiff_t least = 1) {
  return std::count_if(used.begin(), used.end(),
                       [kind](const ProbeMeasurement& each) { return each.kind == kind; }) >= least;
}

/// What has a form: products, copies, and the kernel of a graph.
std::vector<ProbeMeasurement> used_of(const std::vector<ProbeMeasurement>& measurements) {
  std::vector<ProbeMeasurement> used;
  const bool has_products = has(measurements, ProbeKind::gemm, least_products);
  for (const ProbeMeasurement& each : measurements)
    if ((each.kind == ProbeKind::gemm && has_products) || each.kind == ProbeKind::copy ||
        (each.kind == ProbeKind::launch && each.name == "graph"))
      used.push_back(each);
  return used;
}

std::vector<Constant> constants_of(const Device& base, const std::vector<ProbeMeasurement>& used) {
  std::vector<Constant> constants;
  const GemmEfficiency& gemm = base.gemm;
  if (has(used, ProbeKind::gemm)) {
    constants.push_back(constant("gemm/peak_fraction", gemm.peak_fraction, 0.01, 1,
                                 [](Device& d, double x) { d.gemm.peak_fraction = x; }));
    constants.push_back(constant("gemm/inner_half_size", gemm.inner_half_size, 1, 1e4,
                                 [](Device& d, double x) { d.gemm.inner_half_size = x; }));
    constants.push_back(constant("gemm/wave_half_size", gemm.wave_half_size, 1e-3, 30,
                                 [](Device& d, double x) { d.gemm.wave_half_size = x; }));
  }
  if (has(used, ProbeKind::copy))
    constants.push_back(constant("memory/bandwidth_efficiency", base.memory_efficiency, 0.01, 1,
                                 [](Device& d, double x) { d.memory_efficiency = x; }));
  if (has(used, ProbeKind::launch))
    constants.push_back(constant("kernel_overhead", base.kernel_overhead / 1_us, 0.05, 200,
                                 [](Device& d, double x) { d.kernel_overhead = 1_us * x; }));
  return constants;
}

Seconds predict(const Device& device, double compute_efficiency, const ProbeMeasurement& measured) {
  if (measured.kind == ProbeKind::launch) return device.kernel_overhead;
  if (measured.kind == ProbeKind::copy)
    return memory_time(measured.bytes, device) + device.kernel_overhead;
  KernelContext context;
  context.device = &device;
  context.precision = measured.precision;
  context.compute_efficiency = compute_efficiency;
  return gemm_time(measured.gemm, context);
}

FitProblem problem_of(const NodeType& node, const std::vector<Constant>& constants,
                      const std::vector<ProbeMeasurement>& used) {
  return problem_of<Device>(
      node.device, constants, std::vector<double>(used.size(), 1.0), [&](const Device& device) {
        std::vector<double> residuals;
        for (const ProbeMeasurement& each : used)
          residuals.push_back(
              std::log(predict(device, node.compute_efficiency, each) / each.median));
        return residuals;
      });
}

/// The best fit over starts whose half sizes are smaller and larger than the base's.
RobustFit best_fit(const FitProblem& problem, const std::vector<Constant>& constants) {
  constexpr StartFactors factors{1.0, 0.2, 5.0};
  return best_fit<Device>(
      problem, constants, factors, factors, [](const std::string& key, double inner, double wave) {
        return key == "gemm/inner_half_size" ? inner : key == "gemm/wave_half_size" ? wave : 1.0;
      });
}

ProbeError error_of(const ProbeFit& fit, const NodeType& node, ProbeKind kind,
                    const std::vector<ProbeMeasurement>& used) {
  ProbeError result;
  for (const ProbeMeasurement& each : used) {
    if (each.kind != kind) continue;
    const double error =
        std::abs(predict(fit.device, node.compute_efficiency, each) / each.median - 1);
    ++result.count;
    result.mean += error;
    result.worst = std::max(result.worst, error);
  }
  if (result.count > 0) result.mean /= result.count;
  return result;
}

}  // namespace

ProbeFit fit_device(const NodeType& node, const std::vector<ProbeMeasurement>& measurements) {
  ProbeFit result;
  result.device = node.device;
  const std::vector<ProbeMeasurement> used = used_of(measurements);
  const std::vector<Constant> constants = constants_of(node.device, used);
  if (constants.empty()) return result;
  const RobustFit fit = best_fit(problem_of(node, constants, used), constants);
  std::vector<double> values = fit.values;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const Constant& each = constants[i];
    const bool is_held = total(fit.sensitivities[i]) >= least_sensitivity;
    (is_held ? result.fitted : result.kept).push_back(each.key);
    if (!is_held) values[i] = each.start;
    if (is_held && each.upper <= 1 && values[i] >= each.upper * near_bound)
      result.at_bound.push_back(each.key);
  }
  result.device = with(node.device, constants, values);
  result.gemm = error_of(result, node, ProbeKind::gemm, used);
  result.copy = error_of(result, node, ProbeKind::copy, used);
  return result;
}

StreamFit fit_stream(const std::vector<ProbeMeasurement>& calls) {
  WT_EXPECT(calls.size() > 1);
  const auto [least, most] = std::minmax_element(
      calls.begin(), calls.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  WT_EXPECT(most->bytes > least->bytes);
  constexpr double range = 1e4, least_overhead = 1e-8;
  const double rate = most->bytes / most->median / 1_GBps;
  FitProblem problem;
  problem.weights.assign(calls.size(), 1.0);
  problem.start = {rate, std::max(least->median / 1_s / 2, least_overhead * 2)};
  problem.lower = {rate / range, least_overhead};
  problem.upper = {rate * range, std::max(least->median / 1_s, least_overhead) * 2};
  const auto predicted = [](const std::vector<double>& values, const ProbeMeasurement& call) {
    return Seconds{values[1]} + call.bytes / (1_GBps * values[0]);
  };
  problem.residuals = [&](const std::vector<double>& values) {
    std::vector<double> residuals;
    for (const ProbeMeasurement& call : calls)
      residuals.push_back(std::log(predicted(values, call) / call.median));
    return residuals;
  };
  const RobustFit fit = robust_fit(problem);
  StreamFit result{1_GBps * fit.values[0], Seconds{fit.values[1]}, static_cast<int>(calls.size()),
                   0, total(fit.sensitivities.front()) >= least_sensitivity};
  for (const ProbeMeasurement& call : calls)
    result.error += std::abs(predicted(fit.values, call) / call.median - 1) / result.count;
  return result;
}

Seconds median_of(std::vector<Seconds> times) {
  WT_EXPECT(!times.empty());
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace windtunnel
