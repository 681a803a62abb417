#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_array.hpp"
#include "report/report.hpp"
#include "scenario/job_block.hpp"
#include "scenario/scenario.hpp"
#include "simulate/objective_value.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Times of a job in whole nanoseconds: what a run is made of adds up to it exactly.
using Ticks = std::int64_t;
Ticks to_ticks(Seconds time);
Seconds to_seconds(Ticks ticks);
std::string interval_text(Seconds time);  ///< "31.6 ms", "54.0 min", "2.08 h"

/// A job in durations: the scenario's iteration and its `job` block made concrete.
struct JobModel {
  std::int64_t steps = 0;
  /// The time of one step, with so many nodes missing; one entry unless the job is elastic.
  std::vector<Ticks> step;
  Ticks start = 0;      ///< launch to first step, without reading a checkpoint
  Ticks read = 0;       ///< reading a checkpoint, at a restart
  Ticks detection = 0;  ///< of a failure that ends its process
  Ticks hang = 0;       ///< of one that does not: the others wait for it
  double hang_share = 0;
  Ticks repair = 0;
  /// The extra time of steps over `step`, one after the other, over and over; empty where all steps are alike.
  std::vector<Ticks> noise;
  std::int64_t evaluation_every = 0;  ///< steps; 0: never
  Ticks evaluation = 0;
  std::int64_t checkpoint_every = 1;  ///< steps
  Ticks stall = 0;                    ///< training waits so long for each checkpoint
  Ticks write =
      0;  ///< after that, until the checkpoint is safe; 0 where training waits for all of it
  EnumArray<FailingPart, double> failures_per_tick{};  ///< of the whole job
  int nodes = 1, spare_nodes = 0;

  double failure_rate() const;  ///< per tick, of all parts
};

/// A job, and what else of its scenario its results need.
struct Job {
  JobModel model;
  JobBlock block;
  Seconds step_time{};  ///< without noise
  double tokens_per_step = 0;
  int gpus = 0, gpus_per_node = 0;
  int ranks = 0;       ///< GPUs that the plan uses; the others of its nodes idle
  Bytes checkpoint{};  ///< on storage
  StepShares shares;   ///< of a step
  std::vector<Assumption>
      assumptions;  ///< every number of the job that was not given, and its source
};

/// Parameters and optimizer states, each once, as the memory account counts their bytes: of adapters, where they alone are trained.
Bytes checkpoint_bytes(double parameters, const Scenario& scenario);

/// The job of a scenario whose iteration takes what `report` says. The scenario must have a `job` block. `steps` are times of
/// single steps over that of the iteration without noise, in order; empty where there is no noise.
Job make_job(const Scenario& scenario, const Report& report, const std::vector<double>& steps = {});

/// The same job where steps, and what noise adds to them, take `factor` times as long. Nothing for a job of more than 95 years.
std::optional<JobModel> with_longer_steps(JobModel model, double factor);

/// Time lost is least with a checkpoint about every so long: J. W. Young, CACM 17(9), 530-531, 1974:
///   t = sqrt(2 stall mtbf)
/// First order in stall / mtbf; failures at a constant rate, none in a restart.
Seconds young_interval(Seconds stall, Seconds mtbf);
/// The same to a higher order: J. T. Daly, Future Generation Computer Systems 22(3), 303-312, 2006, equation 37:
///   t = sqrt(2 stall mtbf) [1 + 1/3 sqrt(stall / 2 mtbf) + 1/9 (stall / 2 mtbf)] - stall    for stall < 2 mtbf, else mtbf
Seconds daly_interval(Seconds stall, Seconds mtbf);

/// From the launch of a job on so many nodes of 8 GPUs to its first step: measured, in between and beyond on straight lines.
Seconds measured_start_up(int nodes);
/// The same with its source, for people.
extern const char* const start_up_source;

/// Uses of a job's time. Each nanosecond belongs to exactly one.
enum class Spent {
  start,    ///< the first launch
  compute,  ///< steps that count, at the speed of all nodes
  noise,    ///< what they took longer than the fastest step
  slower,   ///< what they took longer on fewer nodes
  evaluation,
  checkpoint,  ///< training waits for a checkpoint
  lost,        ///< steps that a failure undid, and evaluations among them
  detection,   ///< a failure is not known yet
  restart,     ///< launching again and reading a checkpoint
  idle,        ///< too few nodes
};

/// One draw of a job: a whole run, with the failures that it met.
struct JobDraw {
  EnumArray<Spent, Ticks> spent{};  ///< adds up to `total`
  Ticks total = 0;                  ///< on the clock, from launch to the last checkpoint
  EnumArray<FailingPart, std::int64_t> failures{};
  std::int64_t checkpoints = 0;
  std::int64_t num_failures() const;
};

/// Days, and failures, after which a job that gets nowhere is given up: it would never end. A job of 100,000 GPUs that fails every
/// ten minutes has as many failures in two years.
inline constexpr int most_days = 36500;
inline constexpr std::int64_t most_failures = 100'000;

/// Checkpoints between which nothing happens are simulated together or one by one; the result is the same.
enum class QuietPeriods { at_once, one_by_one };

/// Simulates draw number `draw` of the job. The same for the same seed and number, whatever other draws are simulated.
///
/// Events: launch, checkpoint (safe at its end, or once it is written), evaluation, failure. Failures come at a constant rate
/// while the job runs, starts or waits for a checkpoint. A failure undoes all steps since the last safe checkpoint; once it is
/// known, a spare takes the place of the failed node; without one the job goes on with fewer nodes where it is elastic and has
/// at least half of its replicas, and waits for the repair where it does not. A repaired node joins at the next checkpoint.
/// Steps differ as those of `JobModel::noise` do, in their order, from a first one that is drawn; a step that is repeated
/// takes as long as before.
/// InputError for a job that is given up.
JobDraw simulate_draw(const JobModel& model, std::uint64_t seed, std::uint64_t draw,
                      QuietPeriods quiet = QuietPeriods::at_once);
/// The same; nothing for a job that is given up.
std::optional<JobDraw> simulate_draw_if_it_ends(const JobModel& model, std::uint64_t seed,
                                                std::uint64_t draw);

}  // namespace windtunnel
