#include "validate/point_prediction.hpp"

#include <set>

#include "core/contracts.hpp"
#include "evidence/interval.hpp"
#include "evidence/score.hpp"
#include "simulate/memory_inputs.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

/// The account as of the first step, in which the optimizer's moments do not exist yet.
MemoryAccount first_step_account(const Scenario& scenario) {
  MemoryInputs inputs = memory_inputs(scenario, scenario.plan, count_in_flight(scenario.plan));
  inputs.reading = MemoryReading::first_step;
  return account_memory(inputs);
}

std::vector<StageReading> stage_readings(const MemoryAccount& steady, const MemoryAccount& first,
                                         bool of_step) {
  WT_EXPECT(steady.stages.size() == first.stages.size());
  std::vector<StageReading> readings;
  for (std::size_t i = 0; i < steady.stages.size(); ++i)
    readings.push_back(
        {of_step ? sum_at(steady.stages[i].tensors, Moment::step) : steady.stages[i].allocated,
         of_step ? steady.stages[i].reserved_in_step : steady.stages[i].reserved,
         first.stages[i].allocated, first.stages[i].reserved});
  return readings;
}

std::vector<int> stages_of_ranks(const Plan& plan) {
  std::vector<int> stages(static_cast<std::size_t>(plan.num_ranks()), 0);
  for (const PlanDevice& device : plan.devices)
    for (const RankId rank : device.ranks)
      stages.at(rank.index()) = static_cast<int>(device.stage.index());
  return stages;
}

void add_fitted(const std::map<std::string, Source>& sources, const std::string& file,
                std::vector<FittedNumber>& numbers) {
  for (const auto& [key, source] : sources)
    if (source.evidence == Evidence::fitted) numbers.push_back({file + ": " + key, source.text});
}

std::vector<FittedNumber> fitted_numbers(const Scenario& scenario) {
  std::vector<FittedNumber> numbers;
  std::set<std::string> devices;
  for (const NodeType& node : scenario.nodes) devices.insert(node.device.name);
  for (const NodeType& type : scenario.platform.node_types)  // nodes do not carry sources
    if (devices.erase(type.device.name) > 0)
      add_fitted(type.device.sources, "device " + type.device.name, numbers);
  add_fitted(scenario.platform.sources, "platform " + scenario.platform.name, numbers);
  add_fitted(scenario.software.sources, "software " + scenario.software.name, numbers);
  return numbers;
}

}  // namespace

bool FittedNumber::is_fitted_on(const std::string& set) const {
  return source.substr(0, source.find("never fitted on")).find(set) != std::string::npos;
}

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
  PointPrediction prediction;
  prediction.time = report.iteration_time;
  prediction.work = iteration_work(scenario);
  prediction.ideal_work = ideal_work(
      report.hardware_flops_per_gpu * report.iteration_time * plan.num_ranks(), plan.num_ranks(),
      plan.parallel.pipeline, plan.microbatches, plan.parallel.virtual_pipeline);
  prediction.interval = report.iteration_time_interval;
  prediction.judged =
      judged_run(scenario, report.iteration_time, report.breakdown, prediction.interval);
  prediction.last_stage_forward = report.last_stage_forward;
  prediction.last_stage_backward = report.last_stage_backward;
  prediction.memory_max = report.memory.max_total;
  prediction.verdict = report.memory.verdict;
  prediction.stage_of_rank = stages_of_ranks(plan);
  prediction.stages =
      stage_readings(report.memory, first_step_account(scenario), scenario.software.logs_step_peak);
  prediction.fitted = fitted_numbers(scenario);
  return prediction;
}

}  // namespace windtunnel
