#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "importers/job_trace.hpp"

namespace windtunnel {

/// Plays the operations of a job again with other durations, as Lin et al. do ("Understanding Stragglers in Large Model Training
/// Using What-if Analysis", OSDI 2025): an operation begins when all it depends on has ended; a communication ends its duration
/// after the last of its group has begun. What the host does between operations is not in the trace, and takes no time.
///
/// Of one worker: passes run one after another, in the order of the trace; a recv after the pass before the one that waits for
/// it, the pass after its recv, its send after it; sends and recvs of one direction one after another. The first pass awaits the
/// parameters, the gradients the last pass; then norm gradients, embedding gradients, the gradients (unless they are reduced on
/// the way, with separate-grads-all-reduce), clipping, the optimizer. Send and recv are a group; all-gather, reduce-scatter and
/// separate all-reduce one over the data-parallel ranks; the embedding's over first and last stage; clipping over all workers.
class JobReplay {
 public:
  /// Throws InputError where the dependencies of the trace form a circle.
  explicit JobReplay(const JobTrace& trace);

  /// The time of each step, s, with these durations of the trace's operations.
  std::vector<double> step_times(const std::vector<double>& durations) const;

 private:
  const JobTrace* trace_;
  std::vector<std::vector<std::uint32_t>> awaited_;  ///< by each operation
  /// In an order in which all that they depend on comes before; operations without a group are alone in theirs.
  std::vector<std::vector<std::uint32_t>> groups_;
};

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

  double slowdown() const { return ideal_time > 0 ? step_time / ideal_time : 1; }
  /// The part of what stragglers cost that one cause explains; 0 where they cost nothing. Causes overlap: they need not add up to 1.
  double share(const CauseCost& cause) const {
    return step_time > ideal_time ? cause.saved / (step_time - ideal_time) : 0;
  }
};

StragglerAnalysis analyse_stragglers(const JobTrace& trace);

/// A job straggles from here on: ten percent longer than without stragglers. So the authors count jobs.
inline constexpr double straggling_slowdown = 1.1;
/// Microbatches differ by their sequence lengths where forward and backward passes correlate by this at least. So the authors
/// tell that cause.
inline constexpr double sequence_length_correlation = 0.9;

}  // namespace windtunnel
