#include "validate/timer_score.hpp"

namespace windtunnel {

std::vector<TimerComparison> compare_timers(const MeasurementPoint& point,
                                            const PointPrediction& predicted) {
  std::vector<TimerComparison> comparisons;
  const auto compare = [&](const std::string& name, Seconds time) {
    const auto measured = point.timers.find(name);
    if (measured != point.timers.end())
      comparisons.push_back({point.id, name, measured->second, time});
  };
  compare("forward-compute", predicted.last_stage_forward);
  compare("backward-compute", predicted.last_stage_backward);
  return comparisons;
}

std::map<std::string, std::vector<double>> timer_errors(
    const std::vector<TimerComparison>& comparisons) {
  std::map<std::string, std::vector<double>> errors;
  for (const TimerComparison& each : comparisons) errors[each.name].push_back(each.error());
  return errors;
}

}  // namespace windtunnel
