#include "validate/metrics.hpp"

#include <cmath>

namespace windtunnel {
namespace {

template <double Score::*member>
std::optional<double> of_times(const ValidatedSet& set) {
  if (set.comparisons.empty()) return std::nullopt;
  return std::abs(score(set.comparisons).*member);
}

template <MemoryKind kind>
std::optional<double> of_memory(const ValidatedSet& set) {
  return mean_absolute_error(memory_errors(set.memory, kind));
}

std::optional<double> of_all_memory(const ValidatedSet& set) {
  return mean_absolute_error(memory_errors(set.memory));
}

std::optional<double> of_timers(const ValidatedSet& set) {
  std::vector<double> errors;
  for (const TimerComparison& timer : set.timers) errors.push_back(timer.error());
  return mean_absolute_error(errors);
}

template <std::vector<std::string> CapacityVerdicts::*list>
std::optional<double> of_capacity(const ValidatedSet& set) {
  if (set.kind != MeasurementKind::iteration) return std::nullopt;
  return static_cast<double>((set.capacity.*list).size());
}

}  // namespace

const std::vector<Metric>& all_metrics() {
  static const std::vector<Metric> metrics{
      {"mape", of_times<&Score::mape>},
      {"median_ape", of_times<&Score::median_ape>},
      {"p90_ape", of_times<&Score::p90_ape>},
      {"worst_ape", of_times<&Score::worst_ape>},
      {"bias", of_times<&Score::bias>},
      {"memory_mape", of_all_memory},
      {"memory_allocated_mape", of_memory<MemoryKind::allocated>},
      {"memory_reserved_mape", of_memory<MemoryKind::reserved>},
      {"memory_smi_mape", of_memory<MemoryKind::nvidia_smi>},
      {"timers_mape", of_timers},
      {"missed", of_capacity<&CapacityVerdicts::missed>},
      {"refused_that_ran", of_capacity<&CapacityVerdicts::refused_that_ran>},
  };
  return metrics;
}

const Metric* find_metric(const std::string& name) {
  for (const Metric& metric : all_metrics())
    if (metric.name == name) return &metric;
  return nullptr;
}

std::optional<double> mean_absolute_error(const std::vector<double>& errors) {
  if (errors.empty()) return std::nullopt;
  return score_errors(errors).mape;
}

}  // namespace windtunnel
