#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text_input.hpp"

namespace windtunnel {

/// Kind of a job's operation, by its name in the traces of ByteDance-Seed/StragglerAnalysis.
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
  garbage_collection
};
inline constexpr int num_job_works = 14;
const char* name_of(JobWork work);  ///< "forward-compute"

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

}  // namespace windtunnel
