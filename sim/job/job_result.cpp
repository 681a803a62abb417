#include "job/job_result.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "core/contracts.hpp"
#include "core/normal.hpp"
#include "core/quantile.hpp"
#include "job/job_model.hpp"
#include "report/report_words.hpp"
#include "scenario/scenario.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {
namespace {

constexpr double hours_per_month = 730.5;
constexpr double watts_per_megawatt = 1e6, kilowatts_per_megawatt = 1000, kg_per_tonne = 1000;
constexpr double bytes_per_terabyte = 1e12;

double hours(Ticks ticks) { return to_seconds(ticks) / Seconds{seconds_per_hour}; }

constexpr std::size_t most_draws_again =
    200;  ///< at each end of the step's interval, or with other spares

using DrawValue = std::function<double(const JobDraw&)>;

std::vector<double> values_of(const std::vector<JobDraw>& draws, const DrawValue& value) {
  std::vector<double> values;
  values.reserve(draws.size());
  for (const JobDraw& draw : draws) values.push_back(value(draw));
  return values;
}

/// The first draws of a job again, at both ends of the step's interval; none where the step has no interval.
struct StepEnds {
  std::vector<JobDraw> low, high;
};

/// Nothing where the job does not end.
std::optional<std::vector<JobDraw>> rerun(const JobModel& model, const JobOptions& options) {
  std::vector<std::optional<JobDraw>> simulated(std::min(options.draws, most_draws_again));
  run_on_threads(
      simulated.size(), options.at_once,
      [&](std::size_t i) { simulated[i] = simulate_draw_if_it_ends(model, options.seed, i); }, {});
  std::vector<JobDraw> draws;
  for (const std::optional<JobDraw>& draw : simulated) {
    if (!draw) return std::nullopt;
    draws.push_back(*draw);
  }
  return draws;
}

/// The job's model at both ends of the step's interval.
std::vector<JobModel> models_at_ends(const JobResult& result) {
  std::vector<JobModel> models;
  if (!result.step_interval) return models;
  for (const Seconds end : {result.step_interval->first, result.step_interval->second})
    if (auto model = with_longer_steps(result.job.model, end / result.job.step_time))
      models.push_back(std::move(*model));
  return models;
}

StepEnds simulate_ends(JobResult& result) {
  std::vector<std::vector<JobDraw>> ends;
  for (const JobModel& model : models_at_ends(result))
    if (auto draws = rerun(model, result.options)) ends.push_back(std::move(*draws));
  if (ends.size() == 2) return {std::move(ends.front()), std::move(ends.back())};
  if (result.step_interval)
    result.warnings.emplace_back(
        "the interval of the step is left out: at its slow end the job does not end");
  result.step_interval.reset();
  return {};
}

JobFigure figure_by(const JobResult& result, const StepEnds& ends, const DrawValue& value) {
  const std::vector<double> values = values_of(result.draws, value);
  if (ends.low.empty()) return figure_of(values, 1, 1);
  const auto again = static_cast<std::ptrdiff_t>(ends.low.size());
  const double predicted = spread_of({values.begin(), values.begin() + again}).median;
  if (predicted <= 0) return figure_of(values, 1, 1);
  return figure_of(values, std::min(1.0, spread_of(values_of(ends.low, value)).median / predicted),
                   std::max(1.0, spread_of(values_of(ends.high, value)).median / predicted));
}

JobFigure scaled(const JobFigure& figure, double factor) {
  const auto times = [factor](const Spread& spread) {
    return Spread{spread.median * factor, spread.low * factor, spread.high * factor};
  };
  return {times(figure), times(figure.of_run), times(figure.of_step)};
}

/// Adds the evidence for the predicted step. A step that is given needs no prediction.
void add_step_evidence(const Report& report, JobResult& result) {
  if (result.job.block.step_time) return;
  result.step_interval = report.iteration_time_interval;
  result.warnings = report.warnings;
  for (const Assumption& each : report.assumptions)
    if (each.what == "prediction interval" && each.evidence == Evidence::measured)
      result.step_evidence = each.note;
}

void add_means(JobResult& result) {
  double total = 0;
  for (const JobDraw& draw : result.draws) {
    total += to_seconds(draw.total) / Seconds{1};
    for (const Spent kind : enumerators<Spent>())
      result.mean_shares[kind] += to_seconds(draw.spent[kind]) / Seconds{1};
    for (const FailingPart part : enumerators<FailingPart>())
      result.mean_failures[part] += static_cast<double>(draw.failures[part]);
  }
  for (double& share : result.mean_shares) share /= total;
  for (double& failures : result.mean_failures)
    failures /= static_cast<double>(result.draws.size());
}

void add_figures(JobResult& result) {
  const Job& job = result.job;
  const StepEnds ends = simulate_ends(result);
  result.days = figure_by(result, ends, days_of);
  result.failures = spread_of(values_of(
      result.draws, [](const JobDraw& draw) { return static_cast<double>(draw.num_failures()); }));
  result.goodput = spread_of(values_of(result.draws, [](const JobDraw& draw) {
    return to_seconds(draw.spent[Spent::compute]) / to_seconds(draw.total);
  }));
  if (job.block.price)
    result.cost = figure_by(result, ends, [&](const JobDraw& draw) { return cost_of(job, draw); });
  if (!job.block.power) return;
  result.energy_mwh =
      figure_by(result, ends, [&](const JobDraw& draw) { return energy_of(job, draw); });
  if (const auto& factor = job.block.power->kg_co2_per_kwh)
    result.tonnes_co2 = scaled(*result.energy_mwh, *factor * kilowatts_per_megawatt / kg_per_tonne);
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

constexpr double hardly_ever = 0.01;  ///< a job lacks nodes for less of its time

/// Beginning with those of the model, twice as many spare nodes, until the job lacks nodes hardly ever; none where eight times
/// its nodes do not do. `least` and `most` are left alone.
std::optional<EnoughSpares> enough_spares(JobModel model, const JobOptions& options) {
  constexpr int most_per_node = 8;
  for (; model.spare_nodes <= most_per_node * model.nodes;
       model.spare_nodes = std::max(1, 2 * model.spare_nodes)) {
    const auto draws = rerun(model, options);
    if (!draws) return std::nullopt;
    Ticks total = 0, without_nodes = 0;
    for (const JobDraw& draw : *draws) {
      total += draw.total;
      without_nodes += draw.spent[Spent::idle] + draw.spent[Spent::slower];
    }
    if (static_cast<double>(without_nodes) <= hardly_ever * static_cast<double>(total))
      return EnoughSpares{model.spare_nodes, spread_of(values_of(*draws, days_of)).median};
  }
  return std::nullopt;
}

/// Advice on spare nodes, where there is one at both ends of the step's interval as well.
void add_enough_spares(JobResult& result) {
  if (result.share_without_nodes() <= hardly_ever) return;
  JobModel more = result.job.model;
  more.spare_nodes = std::max(1, 2 * more.spare_nodes);
  std::optional<EnoughSpares> enough = enough_spares(std::move(more), result.options);
  if (!enough) return;
  enough->least = enough->most = enough->nodes;
  for (const JobModel& end : models_at_ends(result)) {
    const std::optional<EnoughSpares> at_end = enough_spares(end, result.options);
    if (!at_end) return;
    enough->least = std::min(enough->least, at_end->nodes);
    enough->most = std::max(enough->most, at_end->nodes);
  }
  result.enough_spares = enough;
}

constexpr double least_factor = 0.4, most_factor = 2.5;
constexpr int num_points = 25;
constexpr double wanted_failures = 20'000;
constexpr double fewest_draws = 20, most_draws = 4'000;

std::vector<std::int64_t> intervals_around(double steps, std::int64_t most) {
  std::vector<std::int64_t> list;
  for (int i = 0; i < num_points; ++i) {
    const double factor =
        least_factor * std::pow(most_factor / least_factor, double(i) / (num_points - 1));
    const auto each = std::llround(steps * factor);
    list.push_back(std::clamp<std::int64_t>(each, 1, most));
  }
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

/// None where a draw does not end.
std::optional<double> mean_seconds(JobModel model, std::int64_t every, std::uint64_t seed,
                                   std::size_t draws) {
  model.checkpoint_every = every;
  double sum = 0;
  for (std::size_t i = 0; i < draws; ++i) {
    const std::optional<JobDraw> draw = simulate_draw_if_it_ends(model, seed, i);
    if (!draw) return {};
    sum += to_seconds(draw->total) / Seconds{1};
  }
  return sum / static_cast<double>(draws);
}

/// Determinant of a 3 × 3 matrix of columns.
using Column = std::array<double, 3>;
double determinant(const Column& a, const Column& b, const Column& c) {
  return a[0] * (b[1] * c[2] - b[2] * c[1]) - b[0] * (a[1] * c[2] - a[2] * c[1]) +
         c[0] * (a[1] * b[2] - a[2] * b[1]);
}

/// The minimum of the curve c + a t + b / t, which is the time of a job to first order (half an interval is lost with each failure, and each
/// interval has a checkpoint), fitted to the points: t = sqrt(b / a).
double lowest_point(const std::vector<IntervalPoint>& points) {
  const auto least = std::ranges::min_element(
      points, [](const auto& a, const auto& b) { return a.mean_seconds < b.mean_seconds; });
  const auto first = points.begin();
  Column t{}, u{}, one{}, y{};
  const double scale = static_cast<double>(least->steps);
  for (auto p = first; p != points.end(); ++p) {
    const double x = static_cast<double>(p->steps) / scale, z = 1 / x;
    const double value = p->mean_seconds - least->mean_seconds;
    const Column row{x, z, 1};
    for (std::size_t i = 0; i < row.size(); ++i) {
      t[i] += row[i] * x;
      u[i] += row[i] * z;
      one[i] += row[i];
      y[i] += row[i] * value;
    }
  }
  const double whole = determinant(t, u, one);
  if (whole == 0) return scale;
  const double a = determinant(y, u, one) / whole, b = determinant(t, y, one) / whole;
  if (!(a > 0) || !(b > 0)) return scale;
  const double low = static_cast<double>(points.front().steps);
  const double high = static_cast<double>(points.back().steps);
  return std::clamp(scale * std::sqrt(b / a), low, high);
}

constexpr double low_share = 0.05, high_share = 0.95;

/// P(R <= e^x) of figure_of(); `low` and `high` in logarithms.
double probability_up_to(double x, double low, double high) {
  const double end = x < 0 ? -low : high;
  if (end <= 0) return x < 0 ? 0 : 1;
  return normal_below(normal_95th * x / end);
}

/// The logarithm of the `share` quantile of X R, by bisection; `draws`, `low` and `high` in logarithms.
double quantile_of_both(const std::vector<double>& draws, double low, double high, double share) {
  // Three times an end is where R lies in fewer than one case of a million.
  constexpr double far = 3, precise = 1e-9;
  const auto [least, most] = std::ranges::minmax_element(draws);
  double from = *least + far * low - precise, to = *most + far * high;
  while (to - from > precise) {
    const double middle = from + (to - from) / 2;
    double sum = 0;
    for (const double draw : draws) sum += probability_up_to(middle - draw, low, high);
    (sum < share * static_cast<double>(draws.size()) ? from : to) = middle;
  }
  return to;
}

}  // namespace

double days_of(const JobDraw& draw) { return to_seconds(draw.total) / Seconds{seconds_per_day}; }

/// GPUs of the job and of spare nodes for the whole time, and the checkpoints that are kept.
double cost_of(const Job& job, const JobDraw& draw) {
  const double gpus = job.gpus + double(job.block.spare_nodes) * job.gpus_per_node;
  const double time = hours(draw.total);
  const double terabytes = job.checkpoint / Bytes{bytes_per_terabyte} * job.block.kept_checkpoints;
  return gpus * time * job.block.price->gpu_hour +
         terabytes * time / hours_per_month * job.block.price->storage_tb_month;
}

/// While steps run, GPUs compute, communicate and wait as in the iteration; else they idle, and those of spare nodes
/// and those that the plan does not use always. Cooling and conversion are the overhead.
double energy_of(const Job& job, const JobDraw& draw) {
  const JobBlock::Power& power = *job.block.power;
  const double step = gpu_watts(power, job.shares);
  Ticks simulating = 0;
  for (const Spent kind :
       {Spent::compute, Spent::noise, Spent::slower, Spent::evaluation, Spent::lost})
    simulating += draw.spent[kind];
  const double nodes = job.model.nodes + double(job.block.spare_nodes);
  const double spare_gpus = double(job.block.spare_nodes) * job.gpus_per_node;
  const double watt_hours =
      job.ranks * (hours(simulating) * step + hours(draw.total - simulating) * power.idle) +
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
  result.memory_verdict = report.memory.verdict;
  result.memory = detail::verdict_text(report.memory);
  result.scenario = resolved_text(scenario.resolved);
  result.options = options;
  add_step_evidence(report, result);
  result.draws.resize(options.draws);
  constexpr std::size_t in_a_task = 16;
  std::size_t simulated = 0;
  run_on_threads((options.draws + in_a_task - 1) / in_a_task, options.at_once,
                 [&](std::size_t task) {
                   const std::size_t end = std::min(options.draws, (task + 1) * in_a_task);
                   for (std::size_t i = task * in_a_task; i < end; ++i)
                     result.draws[i] = simulate_draw(result.job.model, options.seed, i);
                 },
                 [&](std::size_t) {
                   simulated = std::min(options.draws, simulated + in_a_task);
                   if (options.on_progress)
                     options.on_progress(std::to_string(simulated) + " of " +
                                         std::to_string(options.draws) + " draws simulated");
                 });
  add_means(result);
  add_figures(result);
  add_intervals(result);
  add_enough_spares(result);
  return result;
}

std::optional<IntervalCurve> interval_curve(const JobModel& model, std::uint64_t seed,
                                            std::size_t at_once) {
  const double rate = model.failure_rate();
  if (rate <= 0 || model.stall <= 0) return std::nullopt;
  const Seconds mtbf = to_seconds(1) / rate;
  const double step = static_cast<double>(model.step.front());
  const double guess =
      static_cast<double>(to_ticks(daly_interval(to_seconds(model.stall), mtbf))) / step;
  const double failures = std::max(rate * step * static_cast<double>(model.steps), 1e-3);
  const auto draws =
      static_cast<std::size_t>(std::clamp(wanted_failures / failures, fewest_draws, most_draws));
  const std::vector<std::int64_t> intervals = intervals_around(std::max(guess, 1.0), model.steps);
  std::vector<std::optional<double>> means(intervals.size());
  run_on_threads(intervals.size(), at_once,
                 [&](std::size_t i) { means[i] = mean_seconds(model, intervals[i], seed, draws); },
                 {});
  IntervalCurve curve;
  for (std::size_t i = 0; i < intervals.size(); ++i)
    if (means[i]) curve.points.push_back({intervals[i], *means[i]});
  if (curve.points.empty()) return std::nullopt;
  curve.best_steps = lowest_point(curve.points);
  return curve;
}

Spread spread_of(std::vector<double> values) {
  WT_EXPECT(!values.empty());
  std::ranges::sort(values);
  constexpr double half = 0.5;
  return {quantile(values, half), quantile(values, low_share), quantile(values, high_share)};
}

JobFigure figure_of(const std::vector<double>& draws, double low, double high) {
  WT_EXPECT(low > 0 && low <= 1 && high >= 1);
  const Spread run = spread_of(draws);
  JobFigure figure{run, run, {run.median, run.median * low, run.median * high}};
  std::vector<double> logarithms;
  for (const double draw : draws)
    if (draw > 0) logarithms.push_back(std::log(draw));
  // Without a price per hour all draws cost nothing.
  if (low == high || logarithms.size() < draws.size()) return figure;
  figure.low = std::exp(quantile_of_both(logarithms, std::log(low), std::log(high), low_share));
  figure.high = std::exp(quantile_of_both(logarithms, std::log(low), std::log(high), high_share));
  return figure;
}

}  // namespace windtunnel
