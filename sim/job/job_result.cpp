#include "job/job_result.hpp"

#include <algorithm>
#include <functional>

#include "core/contracts.hpp"
#include "core/quantile.hpp"
#include "report/report_words.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {
namespace {

constexpr double seconds_per_hour = 3600, seconds_per_day = 86'400;
constexpr double hours_per_month = 730.5;
constexpr double watts_per_megawatt = 1e6, kilowatts_per_megawatt = 1000, kg_per_tonne = 1000;
constexpr double bytes_per_terabyte = 1e12;
constexpr double low_share = 0.05, high_share = 0.95;

double hours(Ticks ticks) { return to_seconds(ticks) / Seconds{seconds_per_hour}; }

Spread spread_by(const std::vector<JobDraw>& draws,
                 const std::function<double(const JobDraw&)>& value) {
  std::vector<double> values;
  values.reserve(draws.size());
  for (const JobDraw& draw : draws) values.push_back(value(draw));
  return spread_of(std::move(values));
}

void add_means(JobResult& result) {
  double total = 0;
  for (const JobDraw& draw : result.draws) {
    total += to_seconds(draw.total) / Seconds{1};
    for (std::size_t i = 0; i < num_spent; ++i)
      result.mean_shares[i] += to_seconds(draw.spent[i]) / Seconds{1};
    for (std::size_t i = 0; i < num_failing_parts; ++i)
      result.mean_failures[i] += static_cast<double>(draw.failures[i]);
  }
  for (double& share : result.mean_shares) share /= total;
  for (double& failures : result.mean_failures)
    failures /= static_cast<double>(result.draws.size());
}

void add_spreads(JobResult& result) {
  const Job& job = result.job;
  result.days = spread_by(result.draws, days_of);
  result.failures = spread_by(
      result.draws, [](const JobDraw& draw) { return static_cast<double>(draw.num_failures()); });
  result.goodput = spread_by(result.draws, [](const JobDraw& draw) {
    return to_seconds(draw.of(Spent::compute)) / to_seconds(draw.total);
  });
  if (job.block.price)
    result.cost = spread_by(result.draws, [&](const JobDraw& draw) { return cost_of(job, draw); });
  if (!job.block.power) return;
  result.energy_mwh =
      spread_by(result.draws, [&](const JobDraw& draw) { return energy_of(job, draw); });
  if (const auto& factor = job.block.power->kg_co2_per_kwh) {
    const double tonnes = *factor * kilowatts_per_megawatt / kg_per_tonne;
    result.tonnes_co2 = Spread{result.energy_mwh->median * tonnes, result.energy_mwh->low * tonnes,
                               result.energy_mwh->high * tonnes};
  }
}

void add_intervals(JobResult& result) {
  const JobModel& model = result.job.model;
  const double rate = model.failure_rate();
  if (rate <= 0) return;
  result.mtbf = to_seconds(1) / rate;
  if (model.stall <= 0) return;
  result.young = young_interval(to_seconds(model.stall), *result.mtbf);
  result.daly = daly_interval(to_seconds(model.stall), *result.mtbf);
  result.intervals = interval_curve(model, result.options.seed, result.options.at_once);
}

/// Twice as many spare nodes as before, until the job lacks nodes for less than a hundredth of the time.
void add_enough_spares(JobResult& result) {
  constexpr double hardly_ever = 0.01;
  constexpr std::size_t most_draws = 200;
  constexpr int most_per_node = 8;
  if (result.share_without_nodes() <= hardly_ever) return;
  JobModel model = result.job.model;
  const std::size_t draws = std::min(result.options.draws, most_draws);
  for (model.spare_nodes = std::max(1, 2 * model.spare_nodes);
       model.spare_nodes <= most_per_node * model.nodes; model.spare_nodes *= 2) {
    std::vector<double> days;
    Ticks total = 0, without_nodes = 0;
    for (std::size_t i = 0; i < draws; ++i) {
      const std::optional<JobDraw> draw = play_job_if_it_ends(model, result.options.seed, i);
      if (!draw) return;
      days.push_back(days_of(*draw));
      total += draw->total;
      without_nodes += draw->of(Spent::idle) + draw->of(Spent::slower);
    }
    if (static_cast<double>(without_nodes) > hardly_ever * static_cast<double>(total)) continue;
    result.enough_spares = EnoughSpares{model.spare_nodes, spread_of(std::move(days)).median};
    return;
  }
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  WT_EXPECT(!values.empty());
  std::sort(values.begin(), values.end());
  constexpr double half = 0.5;
  return {quantile(values, half), quantile(values, low_share), quantile(values, high_share)};
}

double days_of(const JobDraw& draw) { return to_seconds(draw.total) / Seconds{seconds_per_day}; }

/// GPUs of the job and of spare nodes for the whole time, and the checkpoints that are kept.
double cost_of(const Job& job, const JobDraw& draw) {
  const double gpus = job.gpus + double(job.block.spare_nodes) * job.gpus_per_node;
  const double time = hours(draw.total);
  const double terabytes = job.checkpoint / Bytes{bytes_per_terabyte} * job.block.kept_checkpoints;
  return gpus * time * job.block.price->gpu_hour +
         terabytes * time / hours_per_month * job.block.price->storage_tb_month;
}

/// While steps are played, GPUs compute, communicate and wait as in the iteration; else they idle, and those of spare nodes
/// and those that the plan does not use always. Cooling and conversion are the overhead.
double energy_of(const Job& job, const JobDraw& draw) {
  const JobBlock::Power& power = *job.block.power;
  const double step = gpu_watts(power, job.shares);
  Ticks playing = 0;
  for (const Spent kind :
       {Spent::compute, Spent::noise, Spent::slower, Spent::evaluation, Spent::lost})
    playing += draw.of(kind);
  const double nodes = job.model.nodes + double(job.block.spare_nodes);
  const double spare_gpus = double(job.block.spare_nodes) * job.gpus_per_node;
  const double watt_hours =
      job.ranks * (hours(playing) * step + hours(draw.total - playing) * power.idle) +
      hours(draw.total) * ((job.gpus - job.ranks + spare_gpus) * power.idle + nodes * power.node);
  return watt_hours * power.overhead / watts_per_megawatt;
}

JobResult simulate_job(const Scenario& scenario, const Report& report, const JobOptions& options) {
  WT_EXPECT(options.draws > 0);
  JobResult result;
  result.job = make_job(scenario, report, options.noisy_steps);
  result.name = scenario.name;
  result.scenario_hash = scenario.hash;
  result.platform_name = report.platform_name;
  result.model_name = report.model_name;
  result.plan = detail::plan_text(scenario.plan.training, scenario.plan.parallel);
  result.options = options;
  result.draws.resize(options.draws);
  constexpr std::size_t in_a_task = 16;
  std::size_t played = 0;
  run_on_threads((options.draws + in_a_task - 1) / in_a_task, options.at_once,
                 [&](std::size_t task) {
                   const std::size_t end = std::min(options.draws, (task + 1) * in_a_task);
                   for (std::size_t i = task * in_a_task; i < end; ++i)
                     result.draws[i] = play_job(result.job.model, options.seed, i);
                 },
                 [&](std::size_t) {
                   played = std::min(options.draws, played + in_a_task);
                   if (options.on_draws) options.on_draws(played);
                 });
  add_means(result);
  add_spreads(result);
  add_intervals(result);
  add_enough_spares(result);
  return result;
}

}  // namespace windtunnel
