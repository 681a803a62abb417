#include "validate/validate.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/contracts.hpp"
#include "scenario/forked.hpp"

namespace windtunnel {
namespace {

static_assert(std::is_trivially_copyable_v<PointPrediction>);

std::string to_bytes(const PointPrediction& prediction) {
  return {reinterpret_cast<const char*>(&prediction), sizeof prediction};
}

PointPrediction from_bytes(const std::string& bytes) {
  PointPrediction prediction;
  WT_EXPECT(bytes.size() == sizeof prediction);
  std::memcpy(&prediction, bytes.data(), sizeof prediction);
  return prediction;
}

SkippedPoint skipped_for(const std::string& id, const ChildFailure& failure) {
  const bool unsupported = failure.kind == FailureKind::unsupported;
  return {id, unsupported ? SkipKind::unsupported : SkipKind::failed,
          failure.kind == FailureKind::our_bug ? "internal error: " + failure.text : failure.text};
}

/// Indices of the points that have a time to compare with.
std::vector<std::size_t> points_to_predict(const MeasurementSet& set) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < set.points.size(); ++i)
    if (why_not_scored(set, set.points[i]).empty()) indices.push_back(i);
  return indices;
}

std::vector<ChildOutcome> predict_points(const MeasurementSet& set,
                                         const std::vector<std::size_t>& indices,
                                         const Prediction& prediction) {
  ForkedWork work;
  work.count = indices.size();
  work.at_once = prediction.at_once;
  work.work = [&](std::size_t i) {
    return to_bytes(prediction.predict(scenario_of(set, set.points[indices[i]]), set.folder));
  };
  if (prediction.on_progress)
    work.on_done = [&](std::size_t done) { prediction.on_progress(done, indices.size()); };
  return run_forked(work);
}

}  // namespace

bool ValidatedSet::has_failures() const {
  return std::any_of(skipped.begin(), skipped.end(),
                     [](const SkippedPoint& point) { return point.kind == SkipKind::failed; });
}

PointPrediction predict_by_simulation(const JsonValue& value, const std::filesystem::path& folder,
                                      const Library& library) {
  const Scenario scenario = read_scenario(value, folder, library);
  const Plan& plan = scenario.plan;
  const Flops work =
      hardware_flops(scenario.model, plan.training.global_batch, plan.training.recompute);
  return {simulate(scenario).report.iteration_time,
          ideal_work(work, plan.num_ranks(), plan.parallel.pipeline, plan.microbatches,
                     plan.parallel.virtual_pipeline)};
}

ValidatedSet validate(const MeasurementSet& set, const Prediction& prediction) {
  ValidatedSet validated{set.name, set.citation, set.note, set.points.size(), {}, {}};
  const std::vector<std::size_t> indices = points_to_predict(set);
  const std::vector<ChildOutcome> outcomes = predict_points(set, indices, prediction);
  std::size_t next = 0;
  for (std::size_t i = 0; i < set.points.size(); ++i) {
    const MeasurementPoint& point = set.points[i];
    if (next == indices.size() || indices[next] != i) {
      validated.skipped.push_back({point.id, SkipKind::no_time, why_not_scored(set, point)});
      continue;
    }
    const ChildOutcome& outcome = outcomes[next++];
    if (const auto* failure = std::get_if<ChildFailure>(&outcome)) {
      validated.skipped.push_back(skipped_for(point.id, *failure));
      continue;
    }
    const PointPrediction predicted = from_bytes(std::get<std::string>(outcome));
    validated.comparisons.push_back({point.id, point.group, *point.iteration_time,
                                     predicted.iteration_time, predicted.ideal_work});
  }
  return validated;
}

}  // namespace windtunnel
