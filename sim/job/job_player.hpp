#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "job/job_model.hpp"

namespace windtunnel {

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
inline constexpr std::size_t num_spent = 10;

/// One draw of a job: a whole run, with the failures that it met.
struct JobDraw {
  std::array<Ticks, num_spent> spent{};  ///< adds up to `total`
  Ticks total = 0;                       ///< on the clock, from launch to the last checkpoint
  std::array<std::int64_t, num_failing_parts> failures{};
  std::int64_t checkpoints = 0;
  std::int64_t num_failures() const;
  Ticks of(Spent kind) const { return spent[static_cast<std::size_t>(kind)]; }
};

/// Days, and failures, after which a job that gets nowhere is given up: it would never end. A job of 100,000 GPUs that fails every
/// ten minutes has as many failures in two years.
inline constexpr int most_days = 36500;
inline constexpr std::int64_t most_failures = 100'000;

/// Whether checkpoints between which nothing happens are played one by one; the result is the same.
enum class QuietPeriods { at_once, one_by_one };

/// Plays draw number `draw` of the job. The same for the same seed and number, whatever else is played.
///
/// Events: launch, checkpoint (safe at its end, or once it is written), evaluation, failure. Failures come at a constant rate
/// while the job runs, starts or waits for a checkpoint. A failure undoes all steps since the last safe checkpoint; once it is
/// known, a spare takes the place of the failed node; without one the job goes on with fewer nodes where it is elastic and has
/// at least half of its replicas, and waits for the repair where it does not. A repaired node joins at the next checkpoint.
/// Steps differ as those of `JobModel::noise` do, in their order, from a first one that is drawn; a step that is played again
/// takes as long as before.
/// InputError for a job that is given up.
JobDraw play_job(const JobModel& model, std::uint64_t seed, std::uint64_t draw,
                 QuietPeriods quiet = QuietPeriods::at_once);
/// The same; nothing for a job that is given up.
std::optional<JobDraw> play_job_if_it_ends(const JobModel& model, std::uint64_t seed,
                                           std::uint64_t draw);

}  // namespace windtunnel
