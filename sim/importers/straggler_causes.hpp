#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/enum_array.hpp"
#include "core/text_input.hpp"

namespace windtunnel {

/// Kind of a job's operation: dashed_name() is what the traces of ByteDance-Seed/StragglerAnalysis call it, "forward-compute".
enum class JobWork {
  forward_compute,
  backward_compute,
  forward_send,
  forward_recv,
  backward_send,
  backward_recv,
  params_all_gather,
  grads_reduce_scatter,
  separate_grads_all_reduce,
  layernorm_grads_all_reduce,
  embedding_grads_all_reduce,
  optimizer_clip_main_grad,
  optimizer,
  gc  ///< garbage collection
};

/// A forward or backward pass of one microbatch.
bool is_pass(JobWork work);
/// Work of the worker itself, by the authors' reckoning: passes, the optimizer, garbage collection. The rest communicates.
bool is_computing(JobWork work);

/// One operation of one worker in one step.
struct JobOperation {
  JobWork work = JobWork::forward_compute;
  int data_rank = 0, stage = 0;
  int step = 0;                    ///< in JobTrace::steps
  int sequence = 0;                ///< among those of the same work, worker and step, by time
  int microbatch = 0;              ///< of passes
  double begin = 0, duration = 0;  ///< s
};

/// The operations of a training job, over several steps: what a timeline of ByteDance-Seed/StragglerAnalysis holds. A worker is
/// a data-parallel rank and a stage; the ranks of its tensor group work alike and are recorded as one. Of a communication the
/// time that its group takes together is recorded, waiting left out; every worker has the same operations in every step.
struct JobTrace {
  std::string file;
  int num_data_ranks = 0, num_stages = 0;
  std::vector<std::int64_t> steps;             ///< as the trace numbers them
  std::vector<JobOperation> operations;        ///< by step, data-parallel rank and stage
  std::vector<std::int64_t> incomplete_steps;  ///< left out: a worker lacks operations in them

  int num_workers() const { return num_data_ranks * num_stages; }
  int worker_of(const JobOperation& operation) const {
    return operation.data_rank * num_stages + operation.stage;
  }
};

/// Reads a timeline as the authors' `to_timeline.py` writes it: trace events with the data-parallel rank as `pid`, threads named
/// "PP rank 1, TP rank 0, compute", and step, seq_id, mb_id and model_chunk as arguments. Throws InputError with file, line and byte.
JobTrace read_job_trace(TextInput& input);

/// Replays the operations of a job with other durations, as Lin et al. do ("Understanding Stragglers in Large Model Training
/// Using What-if Analysis", OSDI 2025): an operation begins when all it depends on has ended; a communication ends its duration
/// after the last of its group has begun. What the host does between operations is not in the trace, and takes no time.
///
/// Rules of one worker: passes run one after another, in the order of the trace; a recv after the pass before the one that waits for
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

/// Cost of a cause: the time that a step would save without it alone, all else as it was.
struct CauseCost {
  StragglerCause cause = StragglerCause::slow_worker;
  double saved = 0;           ///< s per step, mean over the steps
  double standard_error = 0;  ///< of that mean
};

/// A worker compared with the others of its stage.
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
  EnumArray<JobWork, double>
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
