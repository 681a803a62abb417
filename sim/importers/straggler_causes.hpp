#pragma once

#include <array>
#include <vector>

#include "importers/job_trace.hpp"

namespace windtunnel {

/// Why operations of the same kind take different times.
enum class StragglerCause {
  slow_worker,    ///< a worker takes longer than its peers, the workers of its stage
  uneven_stages,  ///< a stage has more to do than the others
  uneven_batches,  ///< microbatches of one worker take different times, as with sequences of different lengths
  communication,  ///< transfers take longer than most of their kind
};
inline constexpr int num_straggler_causes = 4;
const char* name_of(StragglerCause cause);  ///< "slow-worker"

/// Cost of a cause: the time that a step would save without it alone, all else as it was.
struct CauseCost {
  StragglerCause cause = StragglerCause::slow_worker;
  double saved = 0;           ///< s per step, mean over the steps
  double standard_error = 0;  ///< of that mean
};

/// A worker beside the others of its stage.
struct WorkerPace {
  int data_rank = 0, stage = 0;
  double ratio = 1;  ///< its time in passes over the median of its peers
  double saved = 0;  ///< s per step, were it alone as fast as they are; 0 where it is no slower
};

/// Cost of stragglers to a job and its causes, by replay: slowdown = actual time over the time with ideal operations. Ideal is the mean
/// of its kind for computing, the median for communication, over all steps and workers (the authors' equation 1).
struct StragglerAnalysis {
  double step_time = 0;              ///< s, replayed: without what the host does between operations
  double ideal_time = 0;             ///< s
  std::vector<CauseCost> causes;     ///< by what they save, the most first
  std::vector<WorkerPace> workers;   ///< the slowest first
  std::vector<double> stage_ratios;  ///< time in passes of each stage over the mean of the stages
  std::array<double, num_job_works>
      slowdown_by_work{};  ///< with the actual times of one kind alone (equation 2); 0: none
  double forward_scatter = 0,
         backward_scatter = 0;  ///< standard deviation of passes over their worker's mean
  double forward_backward_correlation = 0;  ///< of those, of one microbatch

  double slowdown() const { return step_time / ideal_time; }
  /// The part of what stragglers cost that one cause explains. Causes overlap: they need not add up to 1.
  double share(const CauseCost& cause) const { return cause.saved / (step_time - ideal_time); }
};

StragglerAnalysis analyse_stragglers(const JobTrace& trace);

/// A job straggles from here on: ten percent longer than without stragglers. So the authors count jobs.
inline constexpr double straggling_slowdown = 1.1;
/// Microbatches differ by their sequence lengths where forward and backward passes correlate by this at least. So the authors
/// tell that cause.
inline constexpr double sequence_length_correlation = 0.9;

}  // namespace windtunnel
