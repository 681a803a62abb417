#include "validate/validate.hpp"

#include <algorithm>

namespace windtunnel {
namespace {

SkippedPoint skipped_for(const std::string& id, const ChildFailure& failure) {
  const bool unsupported = failure.kind == FailureKind::unsupported;
  return {id, unsupported ? SkipKind::unsupported : SkipKind::failed,
          failure.kind == FailureKind::our_bug ? "internal error: " + failure.text : failure.text};
}

/// The points of which something is predicted.
std::vector<const MeasurementPoint*> points_to_predict(const MeasurementSet& set) {
  std::vector<const MeasurementPoint*> points;
  for (const MeasurementPoint& point : set.points)
    if (why_not_predicted(point).empty()) points.push_back(&point);
  return points;
}

PointPrediction predict_point(const MeasurementSet& set, const MeasurementPoint& point,
                              const Prediction& prediction) {
  const JsonValue scenario = scenario_of(set, point);
  if (!point.collective) return prediction.predict(scenario, set.folder);
  return prediction.predict_collective(*point.collective, scenario, set.folder);
}

std::vector<TaskOutcome<PointPrediction>> predict_points(
    const MeasurementSet& set, const std::vector<const MeasurementPoint*>& points,
    const Prediction& prediction) {
  Tasks<PointPrediction> tasks;
  tasks.count = points.size();
  tasks.at_once = prediction.at_once;
  tasks.work = [&](std::size_t i) { return predict_point(set, *points[i], prediction); };
  if (prediction.on_progress)
    tasks.on_done = [&](std::size_t done) { prediction.on_progress(done, points.size()); };
  return run_tasks(tasks);
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
  const auto append = [](auto& list, const auto& more) {
    list.insert(list.end(), more.begin(), more.end());
  };
  append(validated.memory, memory);
  append(validated.timers, compare_timers(point, predicted));
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
  ValidatedSet validated;
  validated.name = set.name;
  validated.citation = set.citation;
  validated.note = set.note;
  validated.num_points = set.points.size();
  validated.never_fitted = set.never_fitted;
  validated.kind = set.kind;
  const std::vector<const MeasurementPoint*> points = points_to_predict(set);
  const std::vector<TaskOutcome<PointPrediction>> outcomes =
      predict_points(set, points, prediction);
  std::size_t next = 0;
  for (const MeasurementPoint& point : set.points) {
    if (next == points.size() || points[next] != &point) {
      validated.skipped.push_back({point.id, SkipKind::no_time, why_not_predicted(point)});
      continue;
    }
    const TaskOutcome<PointPrediction>& outcome = outcomes[next++];
    if (const auto* failure = std::get_if<ChildFailure>(&outcome))
      validated.skipped.push_back(skipped_for(point.id, *failure));
    else
      add_point(set, point, std::get<PointPrediction>(outcome), validated);
  }
  return validated;
}

}  // namespace windtunnel
