#include "validate/validate.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>

#include "core/contracts.hpp"
#include "evidence/interval.hpp"
#include "evidence/score.hpp"
#include "questions/collective.hpp"
#include "simulate/memory_inputs.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

std::vector<int> stages_of_ranks(const Plan& plan) {
  std::vector<int> stages(static_cast<std::size_t>(plan.num_ranks()), 0);
  for (const PlanDevice& device : plan.devices)
    for (const RankId rank : device.ranks)
      stages.at(rank.index()) = static_cast<int>(device.stage.index());
  return stages;
}

}  // namespace

PointPrediction predict_by_simulation(const JsonValue& value, const std::filesystem::path& folder,
                                      const Library& library, const ReadOptions& reading,
                                      const MeasuredErrors* evidence) {
  const Scenario scenario = read_scenario(value, folder, library, reading);
  const Plan& plan = scenario.plan;
  SimulateOptions options;
  if (evidence == nullptr) options.evidence = &library;
  Simulation simulation = simulate(scenario, options);
  Report& report = simulation.report;
  if (evidence != nullptr && !evidence->regimes.empty()) add_interval(scenario, *evidence, report);
  PointPrediction prediction{
      .time = report.iteration_time,
      .work = iteration_work(scenario),
      .ideal_work =
          ideal_work(report.hardware_flops_per_gpu * report.iteration_time * plan.num_ranks(),
                     plan.num_ranks(), plan.parallel.pipeline, plan.microbatches,
                     plan.parallel.virtual_pipeline),
      .judged = judged_run(scenario, report.iteration_time, report.breakdown,
                           report.iteration_time_interval),
      .interval = report.iteration_time_interval,
      .last_stage_forward = report.last_stage_forward,
      .last_stage_backward = report.last_stage_backward,
      .memory_max = report.memory.max_total,
      .verdict = report.memory.verdict,
      .stage_of_rank = stages_of_ranks(plan),
      .stages = {},
      .fitted = fitted_numbers(scenario)};
  // As of the first step, the optimizer's moments do not exist yet.
  MemoryInputs inputs = memory_inputs(scenario, plan, count_in_flight(plan));
  inputs.reading = MemoryReading::first_step;
  const std::vector<StageMemory> first = account_memory(inputs).stages;
  WT_EXPECT(first.size() == report.memory.stages.size());
  for (const StageMemory& stage : report.memory.stages) {
    const bool of_step = scenario.software.logs_step_peak;
    const StageMemory& at_first = first[prediction.stages.size()];
    prediction.stages.push_back({of_step ? sum_at(stage.tensors, Moment::step) : stage.allocated,
                                 of_step ? stage.reserved_in_step : stage.reserved,
                                 at_first.allocated, at_first.reserved});
  }
  return prediction;
}

PointPrediction predict_collective(const CollectiveRun& run, const JsonValue& scenario,
                                   const std::filesystem::path& folder, const Library& library,
                                   const ReadOptions& reading) {
  const Platform machine = read_platform(scenario, folder, library, reading);
  PointPrediction prediction;
  prediction.time = simulate_collective(run, machine).time;
  prediction.ideal_work = Flops{bus_bandwidth(run, Seconds{1}).value()};
  prediction.fitted = fitted_numbers(machine.sources, "platform");
  return prediction;
}

namespace {

struct Sums {
  Bytes measured{}, predicted{};
  int ranks = 0;
};

Bytes predicted_of(const StageReading& stage, MemoryKind kind, MemoryReading reading) {
  const bool first_step = reading == MemoryReading::first_step;
  if (kind == MemoryKind::reserved) return first_step ? stage.first_step_reserved : stage.reserved;
  return first_step ? stage.first_step_allocated : stage.allocated;
}

void compare_ranks(const MeasurementPoint& point, const PointPrediction& predicted, MemoryKind kind,
                   std::vector<MemoryComparison>& comparisons) {
  const std::map<int, Bytes>& by_rank =
      kind == MemoryKind::allocated ? point.memory.allocated : point.memory.reserved;
  const int stages = static_cast<int>(predicted.stages.size());
  std::vector<std::pair<std::string, Sums>> classes;
  for (const auto& [rank, measured] : by_rank) {
    if (rank >= static_cast<int>(predicted.stage_of_rank.size())) continue;
    const int stage = predicted.stage_of_rank[static_cast<std::size_t>(rank)];
    const std::string name = rank_class(stage, stages);
    auto found =
        std::ranges::find_if(classes, [&](const auto& entry) { return entry.first == name; });
    if (found == classes.end()) found = classes.insert(classes.end(), {name, {}});
    found->second.measured += measured;
    found->second.predicted +=
        predicted_of(predicted.stages[static_cast<std::size_t>(stage)], kind, point.memory.reading);
    ++found->second.ranks;
  }
  for (const auto& [name, sums] : classes)
    comparisons.push_back({point.id, kind, name, sums.measured / static_cast<double>(sums.ranks),
                           sums.predicted / static_cast<double>(sums.ranks)});
}

}  // namespace

const char* rank_class(int stage, int stages) {
  if (stage == 0) return "first stage";
  if (stage == stages - 1) return "last stage";
  return stage == stages - 2 ? "next-to-last stage" : "middle stages";
}

std::vector<MemoryComparison> compare_memory(const MeasurementPoint& point,
                                             const PointPrediction& predicted) {
  std::vector<MemoryComparison> comparisons;
  compare_ranks(point, predicted, MemoryKind::allocated, comparisons);
  compare_ranks(point, predicted, MemoryKind::reserved, comparisons);
  if (point.memory.reserved.empty() && point.memory.most_reserved) {
    Bytes most{};
    for (const StageReading& stage : predicted.stages)
      most = std::max(most, predicted_of(stage, MemoryKind::reserved, point.memory.reading));
    comparisons.push_back(
        {point.id, MemoryKind::reserved, "fullest GPU", *point.memory.most_reserved, most});
  }
  if (point.memory.nvidia_smi)
    comparisons.push_back({point.id, MemoryKind::nvidia_smi, "fullest GPU",
                           *point.memory.nvidia_smi, predicted.memory_max});
  return comparisons;
}

std::vector<double> memory_errors(const std::vector<MemoryComparison>& comparisons,
                                  std::optional<MemoryKind> kind) {
  std::vector<double> errors;
  for (const MemoryComparison& each : comparisons)
    if (!kind || each.kind == *kind) errors.push_back(each.error());
  return errors;
}

void CapacityVerdicts::add(const MeasurementPoint& point, MemoryVerdict verdict) {
  const bool fits = verdict != MemoryVerdict::does_not_fit;
  Ends& ends = by_verdict[static_cast<std::size_t>(verdict)];
  ends.out_of_memory += point.out_of_memory ? 1 : 0;
  ends.ran += point.ran() ? 1 : 0;
  if (point.out_of_memory)
    (fits ? missed : caught).push_back(point.id);
  else if (point.ran())
    (fits ? ran : refused_that_ran).push_back(point.id);
}

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
  } else if (memory.empty() && !point.out_of_memory && !point.ran()) {
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
  return !comparisons.empty() || !memory.empty() || !timers.empty() || !capacity.empty();
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
