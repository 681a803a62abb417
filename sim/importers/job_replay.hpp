#pragma once

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
  /// Groups in an order in which all that they depend on comes before; operations without a group are alone in theirs.
  std::vector<std::uint32_t> members_, members_begin_;
  std::vector<std::uint32_t> dependencies_, dependencies_begin_;  ///< of each operation
};

}  // namespace windtunnel
