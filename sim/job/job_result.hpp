#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "evidence/pair_errors.hpp"
#include "job/job_model.hpp"
#include "memory/memory_account.hpp"
#include "report/document.hpp"

namespace windtunnel {

/// Mean length of a job with a checkpoint every so many steps.
struct IntervalPoint {
  std::int64_t steps = 0;
  double mean_seconds = 0;
};

/// Length of a job over the interval of its checkpoints, simulated with the same failures for each.
struct IntervalCurve {
  std::vector<IntervalPoint> points;  ///< by number of steps
  double best_steps = 0;  ///< where the curve c + a t + b / t through the points is lowest
};

/// Nothing where nothing fails, or a checkpoint costs nothing.
std::optional<IntervalCurve> interval_curve(const JobModel& model, std::uint64_t seed,
                                            std::size_t at_once);

/// A figure over many runs.
struct Spread {
  double median = 0, low = 0, high = 0;  ///< 5th and 95th percentile
};
/// The percentiles of `values`, between neighbours on a straight line.
Spread spread_of(std::vector<double> values);

/// A figure of a job, in which two independent errors meet: runs differ (failures, noise), and the predicted step may be off. The
/// median is that of the draws at the predicted step; `low` and `high` hold 90 % of runs over both errors.
///
///   draws at the predicted step   29.4 … 29.5 … 29.6 days     `of_run`
///   the same draws at both ends of the step's interval: medians of 25.9 and 37.8 days     `of_step`
///   both   25.9 … 29.5 … 37.8 days
struct JobFigure : Spread {
  Spread of_run;
  Spread of_step;
};

/// The figure whose draws at the predicted step are `draws`, and whose median is `low` and `high` times as large at the ends of the
/// step's 90 % interval (low <= 1 <= high). The figure of a run is X R: X is one of the draws, each as likely, and R, independent of
/// it, is what the step's error makes of it. ln R has median 0, and each half is half of a normal distribution whose 5th or 95th
/// percentile is ln(low) or ln(high): a two-piece normal distribution (K. F. Wallis, Statistical Science 29(1), 106-112, 2014) with
/// as much weight on either side. Residuals say where the interval ends, not how they lie inside: that shape is assumed. The
/// percentiles of X R are exact under it: they solve
///   mean over the draws x of P(R <= t / x) = 0.05 or 0.95
JobFigure figure_of(const std::vector<double>& draws, double low, double high);

struct JobOptions {
  std::size_t draws = 1000;
  std::uint64_t seed = 0;
  std::size_t at_once = 1;  ///< threads; the result is the same for any number
  /// Times of single steps with the scenario's noise, over that of one without, in order; empty where it has none.
  std::vector<double> noisy_steps = {};
  /// "16 of 1000 draws simulated": how far the work has come; may be empty.
  std::function<void(const std::string&)> on_progress = {};
};

JsonValue spread_json(const Spread& spread);

/// Spare nodes with which the job hardly ever waits for a repair, and how long it then takes.
struct EnoughSpares {
  int nodes = 0;
  double median_days = 0;
  int least = 0, most = 0;  ///< that are enough over the interval of the step
};

/// Result of many draws of a job.
struct JobResult {
  Job job;
  std::string name, scenario_hash, platform_name, model_name;
  std::string plan;  ///< detail::plan_text()
  MemoryVerdict memory_verdict = MemoryVerdict::fits;
  std::string memory;    ///< the verdict in words (detail::verdict_text()); may be empty
  std::string scenario;  ///< resolved_text()
  JobOptions options;
  /// The 90 % interval of the predicted step; none where the step is given, or nothing comparable was measured.
  std::optional<std::pair<Seconds, Seconds>> step_interval;
  std::string
      step_evidence;  ///< runs on which the interval rests; empty where a warning says why there are none
  std::vector<std::string> warnings;  ///< of the predicted step
  std::vector<JobDraw> draws;         ///< at the predicted step
  JobFigure days;
  Spread failures;
  Spread goodput;  ///< share of the time that computes steps that count, at full speed
  EnumArray<Spent, double> mean_shares{};  ///< of the time of all draws
  EnumArray<FailingPart, double> mean_failures{};
  std::optional<JobFigure> cost, energy_mwh, tonnes_co2;
  std::optional<Seconds> mtbf, young, daly;  ///< none where nothing fails
  std::optional<IntervalCurve> intervals;
  std::optional<EnoughSpares> enough_spares;  ///< none where the job has enough

  bool fits() const { return memory_verdict != MemoryVerdict::does_not_fit; }
  /// Share of the time in which the job lacks nodes: waits for them, or is slower without them.
  double share_without_nodes() const {
    return mean_shares[Spent::idle] + mean_shares[Spent::slower];
  }
};

/// Simulates the job `options.draws` times at the predicted step, and up to 200 of these draws again at each end of the step's
/// interval, if `report` has one: steps, and what noise adds to them, take as many times as long as that end says; restarts,
/// checkpoints and evaluations do not. Checkpoints keep their number of steps.
JobResult simulate_job(const Scenario& scenario, const Report& report, const JobOptions& options);

/// Money and MWh of one draw.
double cost_of(const Job& job, const JobDraw& draw);
double energy_of(const Job& job, const JobDraw& draw);
double days_of(const JobDraw& draw);

/// A spread, and for jobs whose step has an interval what each of the two errors alone makes of it.
JsonValue figure_json(const JobFigure& figure, const JobResult& result);
std::optional<JsonValue> figure_json(const std::optional<JobFigure>& figure,
                                     const JobResult& result);  ///< where there is one
document::Document job_document(const JobResult& result);
std::string job_csv(const JobResult& result);  ///< a row for each draw
/// Two decimals below ten, one below a hundred, then none and thousands apart.
std::string amount_text(double amount);

/// Unit in which lengths of jobs are printed: days, or hours below a day, or minutes below an hour. JSON has days.
struct LengthUnit {
  const char* name;
  double per_day;
  std::string (*text)(double days);
};
const LengthUnit& length_unit(double days);
/// figure(), but lengths in another unit than the data's are plain text: a page could not compare them.
document::Words job_figure(const JsonValue& data, const std::string& pointer,
                           std::string (*format)(double));

/// One point of a sweep, simulated as a job.
struct JobPoint {
  std::string values;                    ///< "nodes 128, platform dgx-h100"
  std::optional<JobResult> result;       ///< none where the point cannot be read; without its draws
  std::string problem;                   ///< why there is no result
  std::optional<JudgedRun> judged = {};  ///< its step, compared with that of others
  std::shared_ptr<const PairErrors> pairs = {};  ///< by which steps are distinguished; may be null
  /// No other point that fits takes fewer days and less money, as predicted. Where jobs have no price, nothing is.
  bool on_front = false;
  bool front_is_sure =
      true;  ///< the errors of the points leave no doubt that it is on the front, or that it is not
};

/// A measure by which points are compared.
enum class Expense { days, cost };

/// True if the order of two points in days, or in money, is known: right in 90 of 100 cases, as Ordering::is_known(). With medians a
/// factor of e^g apart, and errors u of the steps and v of the runs' own randomness that reach from one median towards the other:
///   sqrt(u^2 + v^2) < g
/// u is what measured pairs say where the points share stack, GPUs and model (least_known_gain()); else, as v, that of two
/// independent spreads.
bool is_order_known(const JobPoint& one, const JobPoint& other, Expense expense);

/// Marks the points on the Pareto front of median days against median cost, and where their errors leave that open.
void mark_front(std::vector<JobPoint>& points);

/// The points of the sweep `name`: a table, and a chart of days against money.
document::Document job_points_document(const std::string& name,
                                       const std::vector<JobPoint>& points);
std::string job_points_csv(const std::vector<JobPoint>& points);  ///< a row for each point

}  // namespace windtunnel
