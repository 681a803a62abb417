#include "validate/validate.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace windtunnel {
namespace {

SkippedPoint skipped_for(const std::string& id, const ChildFailure& failure) {
  const bool unsupported = failure.kind == FailureKind::unsupported;
  return {id, unsupported ? SkipKind::unsupported : SkipKind::failed,
          failure.kind == FailureKind::our_bug ? "internal error: " + failure.text : failure.text};
}

/// The measured time of a point; none where there is nothing to compare with.
std::optional<Seconds> compared_time(const MeasurementPoint& point, const IterationWork& work) {
  if (point.collective) return point.collective->measured;
  return point.out_of_memory ? std::nullopt : measured_time(point, work);
}

void add_point(const MeasurementSet& set, const MeasurementPoint& point,
               const PointPrediction& predicted, ValidatedSet& validated) {
  const std::vector<MemoryComparison> memory = compare_memory(point, predicted);
  if (const auto measured = compared_time(point, predicted.work)) {
    validated.comparisons.push_back({point.id, point.group, *measured, predicted.time,
                                     predicted.ideal_work, predicted.interval, predicted.judged});
  } else if (memory.empty()) {
    validated.skipped.push_back({point.id, SkipKind::no_time, why_not_scored(set, point)});
  }
  std::ranges::copy(memory, std::back_inserter(validated.memory));
  std::ranges::copy(compare_timers(point, predicted), std::back_inserter(validated.timers));
  if (!point.collective) validated.capacity.add(point, predicted.verdict);
  for (const FittedNumber& number : predicted.fitted)
    if (number.is_fitted_on(set.name)) validated.fitted_numbers.insert(number.name);
}

}  // namespace

bool ValidatedSet::has_failures() const {
  return std::ranges::any_of(
      skipped, [](const SkippedPoint& point) { return point.kind == SkipKind::failed; });
}

bool ValidatedSet::has_scores() const {
  return !comparisons.empty() || !memory.empty() || !timers.empty();
}

std::vector<ScoredRow> iterations_of(const std::vector<ValidatedSet>& sets) {
  std::vector<ScoredRow> all;
  for (const ValidatedSet& set : sets)
    if (set.kind == MeasurementKind::iteration)
      all.insert(all.end(), set.comparisons.begin(), set.comparisons.end());
  return all;
}

std::vector<MeasuredRun> measured_runs(const std::vector<ValidatedSet>& sets) {
  std::vector<MeasuredRun> runs;
  for (const ValidatedSet& set : sets)
    for (const ScoredRow& row : set.comparisons)
      if (row.judged) runs.push_back({set.name, *row.judged, row.measured});
  return runs;
}

ValidatedSet validate(const MeasurementSet& set, const Prediction& prediction) {
  std::vector<const MeasurementPoint*> points;  // of which something is predicted
  for (const MeasurementPoint& point : set.points)
    if (why_not_predicted(point).empty()) points.push_back(&point);
  Tasks<PointPrediction> tasks{points.size(), prediction.at_once, [&](std::size_t i) {
                                 const JsonValue scenario = scenario_of(set, *points[i]);
                                 const auto& collective = points[i]->collective;
                                 return collective ? prediction.predict_collective(
                                                         *collective, scenario, set.folder)
                                                   : prediction.predict(scenario, set.folder);
                               }};
  if (prediction.on_progress)
    tasks.on_done = [&](std::size_t done) { prediction.on_progress(done, points.size()); };
  const std::vector<TaskOutcome<PointPrediction>> outcomes = run_tasks(tasks);
  ValidatedSet validated;
  validated.name = set.name;
  validated.citation = set.citation;
  validated.note = set.note;
  validated.num_points = set.points.size();
  validated.never_fitted = set.never_fitted;
  validated.kind = set.kind;
  auto outcome = outcomes.begin();
  for (const MeasurementPoint& point : set.points)
    if (const std::string why = why_not_predicted(point); !why.empty())
      validated.skipped.push_back({point.id, SkipKind::no_time, why});
    else if (const auto* failure = std::get_if<ChildFailure>(&*outcome++))
      validated.skipped.push_back(skipped_for(point.id, *failure));
    else
      add_point(set, point, std::get<PointPrediction>(*std::prev(outcome)), validated);
  return validated;
}

std::vector<ScoredRow> compare_timers(const MeasurementPoint& point,
                                      const PointPrediction& predicted) {
  std::vector<ScoredRow> timers;
  for (const auto& [name, time] : {std::pair{"forward-compute", predicted.last_stage_forward},
                                   {"backward-compute", predicted.last_stage_backward}})
    if (const auto measured = point.timers.find(name); measured != point.timers.end())
      timers.push_back({point.id, name, measured->second, time});
  return timers;
}

std::map<std::string, std::vector<double>> timer_errors(const std::vector<ScoredRow>& timers) {
  std::map<std::string, std::vector<double>> errors;
  for (const ScoredRow& each : timers) errors[each.group].push_back(each.error());
  return errors;
}

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
      {"memory_mape",
       [](const ValidatedSet& set) { return mean_absolute_error(memory_errors(set.memory)); }},
      {"memory_allocated_mape", of_memory<MemoryKind::allocated>},
      {"memory_reserved_mape", of_memory<MemoryKind::reserved>},
      {"memory_smi_mape", of_memory<MemoryKind::nvidia_smi>},
      {"timers_mape",
       [](const ValidatedSet& set) -> std::optional<double> {
         return set.timers.empty() ? std::nullopt : std::optional(score(set.timers).mape);
       }},
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
