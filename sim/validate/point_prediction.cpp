#include "validate/point_prediction.hpp"

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
  prediction.time = play_collective(run, machine).time;
  prediction.ideal_work = Flops{bus_bandwidth(run, Seconds{1}).value()};
  prediction.fitted = fitted_numbers(machine.sources, "platform " + machine.name);
  return prediction;
}

}  // namespace windtunnel
