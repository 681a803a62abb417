#include "importers/straggler_causes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/mapped.hpp"
#include "core/problem.hpp"
#include "core/quantile.hpp"
#include "core/work_note.hpp"
#include "importers/trace_event_reader.hpp"

namespace windtunnel {
namespace {

using detail::TraceEvent;
using detail::TraceEventReader;
using detail::TraceRoot;

constexpr std::int64_t most_ranks = 100'000, most_operations = 20'000'000;

/// Takes the events one by one.
class JobTraceBuilder {
 public:
  explicit JobTraceBuilder(TraceEventReader& reader) : reader_(reader) {}

  void take(const TraceEvent& event) {
    const std::string &phase = event.field("ph"), &name = event.field("name");
    if (phase == "M" && name == "thread_name") return take_thread(event);
    if (phase != "X") return;
    std::string work_name = name;
    std::ranges::replace(work_name, '-', '_');
    if (const auto work = enumerator_named<JobWork>(work_name)) take_operation(event, *work);
  }

  JobTrace finish() {
    for (TracedOperation& each : found_) {
      const auto stage = stages_.find({each.operation.data_rank, each.thread});
      if (stage == stages_.end()) {
        reader_.problem("/traceEvents",
                        "thread " + std::to_string(each.thread) + " of data-parallel rank " +
                            std::to_string(each.operation.data_rank) +
                            " has no name that says its stage",
                        "write a thread_name event with \"PP rank 0, TP rank 0, compute\"");
        return {};
      }
      each.operation.stage = stage->second;
    }
    std::ranges::sort(found_, {}, [](const TracedOperation& found) {
      const JobOperation& operation = found.operation;
      return std::tuple{found.step, operation.data_rank, operation.stage, operation.work,
                        operation.sequence};
    });
    JobTrace trace;
    using Program =
        std::vector<std::pair<JobWork, int>>;  // works and sequence numbers of a worker in a step
    std::map<std::int64_t, std::map<std::pair<int, int>, Program>> programs;  // by step and worker
    for (const auto& [operation, thread, step] : found_) {
      trace.num_data_ranks = std::max(trace.num_data_ranks, operation.data_rank + 1);
      trace.num_stages = std::max(trace.num_stages, operation.stage + 1);
      programs[step][{operation.data_rank, operation.stage}].emplace_back(operation.work,
                                                                          operation.sequence);
    }
    std::map<int, std::map<Program, int>> seen;  // how many workers, by stage
    for (const auto& [step, workers] : programs)
      for (const auto& [worker, program] : workers) ++seen[worker.second][program];
    // The usual program of a stage, in every step, is that of most of its workers.
    const auto is_usual = [&](const auto& worker) {
      const auto& [place, program] = worker;
      const auto& counts = seen.at(place.second);
      const auto usual =
          std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; });
      return program == usual->first && std::ranges::adjacent_find(program) == program.end();
    };
    for (const auto& [step, workers] : programs) {
      const bool is_complete = static_cast<int>(workers.size()) == trace.num_workers() &&
                               std::ranges::all_of(workers, is_usual);
      (is_complete ? trace.steps : trace.incomplete_steps).push_back(step);
    }
    for (const auto& [operation, thread, step] : found_) {
      const auto at = std::ranges::lower_bound(trace.steps, step);
      if (at == trace.steps.end() || *at != step) continue;
      trace.operations.push_back(operation);
      trace.operations.back().step = static_cast<int>(at - trace.steps.begin());
    }
    return trace;
  }

 private:
  struct TracedOperation {
    JobOperation operation;
    std::int64_t thread = 0, step = 0;
  };

  void take_thread(const TraceEvent& event) {
    constexpr std::string_view word = "PP rank ";
    const std::string& name = event.argument("name");
    const std::size_t at = name.find(word);
    const auto rank = reader_.whole(event, "pid"), thread = reader_.whole(event, "tid");
    if (at == std::string::npos || !rank || !thread) return;
    int stage = -1;
    const char* const from = name.data() + at + word.size();
    std::from_chars(from, name.data() + name.size(), stage);
    if (stage < 0 || stage >= most_ranks || *rank >= most_ranks)
      return reader_.problem(place_of(event), "\"" + name + "\" names no stage below 100000");
    stages_[{static_cast<int>(*rank), *thread}] = stage;
  }

  std::optional<std::int64_t> number(const TraceEvent& event, const std::string& key) {
    const auto value = event.whole_argument(key);
    if (value && *value >= 0) return value;
    reader_.problem(place_of(event, "/args/" + key), key + " is no whole number from 0");
    return std::nullopt;
  }

  static std::string place_of(const TraceEvent& event, const std::string& inside = {}) {
    return "/traceEvents/" + std::to_string(event.number) + inside;
  }

  void take_operation(const TraceEvent& event, JobWork work) {
    // Clocks of hosts differ: a transfer can seem to end a little before its last member began, and takes no time then.
    constexpr std::int64_t clock_error = 10'000'000;  // ns; the authors' tolerance
    const auto begin = reader_.time(event, "ts");
    auto duration = detail::to_nanoseconds_exactly(event.field("dur"));
    duration = duration && *duration < 0 && *duration > -clock_error
                   ? std::optional<std::int64_t>(0)
                   : reader_.time(event, "dur");
    const auto rank = reader_.whole(event, "pid"), thread = reader_.whole(event, "tid");
    const auto step = number(event, "step"), sequence = number(event, "seq_id");
    if (!begin || !duration || !rank || !thread || !step || !sequence) return;
    if (*rank >= most_ranks || *sequence >= most_ranks)
      return reader_.problem(place_of(event), "a rank or seq_id of 100000 or more");
    if (is_pass(work) && event.whole_argument("model_chunk").value_or(0) > 0)
      reader_.stop(place_of(event, "/args/model_chunk"),
                   "an interleaved schedule, which is not replayed",
                   "one model chunk per stage is");
    TracedOperation found;
    found.operation.work = work;
    found.operation.data_rank = static_cast<int>(*rank);
    found.operation.sequence = static_cast<int>(*sequence);
    found.operation.microbatch = static_cast<int>(
        std::clamp<std::int64_t>(event.whole_argument("mb_id").value_or(0), 0, most_ranks));
    constexpr double nanosecond = 1e-9;
    found.operation.begin = static_cast<double>(*begin) * nanosecond;
    found.operation.duration = static_cast<double>(*duration) * nanosecond;
    found.thread = *thread;
    found.step = *step;
    found_.push_back(found);
    if (static_cast<std::int64_t>(found_.size()) > most_operations)
      reader_.stop("/traceEvents", "more than 20 million operations", "give fewer steps");
  }

  TraceEventReader& reader_;
  std::map<std::pair<int, std::int64_t>, int> stages_;  ///< by data-parallel rank and thread
  std::vector<TracedOperation> found_;
};

using Awaited = std::vector<std::vector<std::uint32_t>>;

/// Adds what the operations of one worker in one step, which are those from `begin` to `end`, wait for on that worker.
void add_awaited(const JobTrace& trace, std::uint32_t begin, std::uint32_t end, Awaited& awaited) {
  EnumArray<JobWork, std::vector<std::uint32_t>> all;
  std::vector<std::uint32_t> passes;  // by time
  for (std::uint32_t i = begin; i < end; ++i) {
    const JobWork work = trace.operations[i].work;
    all[work].push_back(i);
    if (is_pass(work)) passes.push_back(i);
  }
  std::ranges::sort(passes, {}, [&](std::uint32_t pass) {
    return std::pair{trace.operations[pass].begin, pass};
  });
  const auto await = [&](std::uint32_t operation, std::uint32_t what) {
    awaited[operation].push_back(what);
  };
  const auto chain = [&](const std::vector<std::uint32_t>& operations) {
    for (std::size_t i = 1; i < operations.size(); ++i) await(operations[i], operations[i - 1]);
  };
  chain(passes);
  for (const auto& [work, recv, send] :
       {std::array{JobWork::forward_compute, JobWork::forward_recv, JobWork::forward_send},
        {JobWork::backward_compute, JobWork::backward_recv, JobWork::backward_send}}) {
    const auto &of_work = all[work], &recvs = all[recv], &sends = all[send];
    chain(recvs);
    chain(sends);
    for (std::size_t i = 0; i < std::min(of_work.size(), recvs.size()); ++i) {
      await(of_work[i], recvs[i]);
      if (i > 0) await(recvs[i], of_work[i - 1]);
    }
    for (std::size_t i = 0; i < std::min(of_work.size(), sends.size()); ++i)
      await(sends[i], of_work[i]);
  }
  // The first message of the backward pass is launched after the last but one forward pass before it.
  const auto first = std::ranges::find(passes, JobWork::backward_compute, [&](std::uint32_t pass) {
    return trace.operations[pass].work;
  });
  if (first != passes.end() && first - passes.begin() >= 2)
    for (const JobWork work : {JobWork::backward_recv, JobWork::backward_send})
      if (!all[work].empty()) await(all[work].front(), *(first - 2));
  const auto &gathers = all[JobWork::params_all_gather],
             &reductions = all[JobWork::grads_reduce_scatter];
  chain(gathers);
  chain(reductions);
  if (!gathers.empty() && !reductions.empty()) await(reductions.front(), gathers.back());
  if (passes.empty()) return;
  if (!gathers.empty()) await(passes.front(), gathers.back());
  const bool overlapped = !all[JobWork::separate_grads_all_reduce].empty();
  std::vector<std::uint32_t> last{passes.back()};
  if (overlapped && !reductions.empty()) {
    await(reductions.front(), passes.back());
    last.push_back(reductions.back());
  }
  for (const JobWork work :
       {JobWork::gc, JobWork::layernorm_grads_all_reduce, JobWork::embedding_grads_all_reduce,
        JobWork::grads_reduce_scatter, JobWork::separate_grads_all_reduce,
        JobWork::optimizer_clip_main_grad, JobWork::optimizer}) {
    if ((work == JobWork::grads_reduce_scatter && overlapped) || all[work].empty()) continue;
    for (const std::uint32_t before : last) await(all[work].front(), before);
    chain(all[work]);
    last = {all[work].back()};
  }
}

/// Common to the members of one communication: step, kind, data-parallel rank, stage, sequence.
using TransferKey = std::tuple<int, JobWork, int, int, int>;

TransferKey group_of(const JobOperation& operation) {
  constexpr int all = -1;
  const JobWork work = operation.work;
  const auto key = [&](JobWork of_group, int data_rank, int stage) {
    return TransferKey{operation.step, of_group, data_rank, stage, operation.sequence};
  };
  if (work == JobWork::forward_recv)
    return key(JobWork::forward_send, operation.data_rank, operation.stage - 1);
  if (work == JobWork::backward_recv)
    return key(JobWork::backward_send, operation.data_rank, operation.stage + 1);
  if (work == JobWork::forward_send || work == JobWork::backward_send)
    return key(work, operation.data_rank, operation.stage);
  if (work == JobWork::embedding_grads_all_reduce) return key(work, operation.data_rank, all);
  return key(work, all, work == JobWork::optimizer_clip_main_grad ? all : operation.stage);
}

double ratio_of(double a, double b) { return b > 0 ? a / b : 1; }

std::size_t index_of(int number) { return static_cast<std::size_t>(number); }

/// Mean times of one kind of pass.
struct MeanPassTimes {
  MeanPassTimes(const JobTrace& trace, JobWork work) {
    std::vector<std::vector<double>> durations(index_of(trace.num_workers()));
    for (const JobOperation& operation : trace.operations)
      if (operation.work == work)
        durations[index_of(trace.worker_of(operation))].push_back(operation.duration);
    for (const std::vector<double>& of_worker : durations) worker.push_back(mean_of(of_worker));
    for (int stage = 0; stage < trace.num_stages; ++stage) {
      std::vector<double> times;
      for (int i = stage; i < trace.num_workers(); i += trace.num_stages)
        times.push_back(worker[index_of(i)]);
      // The faster of two workers is the peer of the slower.
      peers.push_back(lower_median_of(std::move(times)));
    }
    stages = mean_of(peers);
  }

  std::vector<double> worker;  ///< of each worker
  std::vector<double> peers;   ///< of each stage: the median over its workers
  double stages = 0;           ///< the mean over the stages of that
};

EnumArray<JobWork, double> ideal_times(const JobTrace& trace) {
  EnumArray<JobWork, std::vector<double>> times;
  for (const JobOperation& operation : trace.operations)
    times[operation.work].push_back(operation.duration);
  EnumArray<JobWork, double> ideal{};
  for (const JobWork work : enumerators<JobWork>())
    if (!times[work].empty())
      ideal[work] = is_computing(work) ? mean_of(times[work]) : median_of(std::move(times[work]));
  return ideal;
}

/// Adds the scatter of passes about their worker's mean, and the correlation of the two passes of a microbatch.
void add_scatter(StragglerAnalysis& analysis, const JobTrace& trace,
                 const std::array<MeanPassTimes, 2>& times) {
  std::map<std::tuple<int, int, int>, std::array<double, 2>> passes;  // by step, worker, microbatch
  for (const JobOperation& operation : trace.operations) {
    if (!is_pass(operation.work)) continue;
    const int worker = trace.worker_of(operation);
    const std::size_t pass = operation.work == JobWork::forward_compute ? 0 : 1;
    passes[{operation.step, worker, operation.microbatch}][pass] =
        ratio_of(operation.duration, times[pass].worker[index_of(worker)]) - 1;
  }
  double forward = 0, backward = 0, both = 0;
  for (const auto& [pass, scatter] : passes) {
    forward += scatter[0] * scatter[0];
    backward += scatter[1] * scatter[1];
    both += scatter[0] * scatter[1];
  }
  if (forward > 0 && backward > 0)
    analysis.forward_backward_correlation = both / std::sqrt(forward * backward);
  const auto count = static_cast<double>(std::max<std::size_t>(passes.size(), 1));
  analysis.forward_scatter = std::sqrt(forward / count);
  analysis.backward_scatter = std::sqrt(backward / count);
}

}  // namespace

bool is_pass(JobWork work) {
  return work == JobWork::forward_compute || work == JobWork::backward_compute;
}

bool is_computing(JobWork work) {
  return is_pass(work) || work == JobWork::optimizer || work == JobWork::gc;
}

JobTrace read_job_trace(TextInput& input) {
  const WorkNoteScope reading("reading a trace", "bytes");
  TraceEventReader reader(input, TraceRoot::object_or_list);
  JobTraceBuilder builder(reader);
  if (input.beginning().starts_with("PAR1"))
    reader.problem(
        {}, "this is a Parquet file, which is not read",
        "give the timeline of the same job: timeline-*.json.gz, or what to_timeline.py writes");
  reader.problems().throw_if_any();
  reader.read([&](const TraceEvent& event) { builder.take(event); });
  reader.problems().throw_if_any();
  JobTrace trace = builder.finish();
  trace.file = input.name();
  if (reader.problems().empty() && trace.operations.empty())
    reader.problem(
        "/traceEvents",
        trace.incomplete_steps.empty()
            ? std::string("no operation of a training job in the trace")
            : "no step in which all " + std::to_string(trace.num_workers()) +
                  " workers have the same operations",
        "a timeline of ByteDance-Seed/StragglerAnalysis has forward-compute, backward-compute, …");
  reader.problems().throw_if_any();
  return trace;
}

JobReplay::JobReplay(const JobTrace& trace) : trace_(&trace), awaited_(trace.operations.size()) {
  const auto worker_at = [&](std::uint32_t i) {
    const JobOperation& operation = trace.operations[i];
    return std::tuple{operation.step, operation.data_rank, operation.stage};
  };
  for (std::uint32_t begin = 0, end = 0; begin < trace.operations.size(); begin = end) {
    while (end < trace.operations.size() && worker_at(begin) == worker_at(end)) ++end;
    add_awaited(trace, begin, end, awaited_);
  }
  std::vector<std::vector<std::uint32_t>> groups;
  std::vector<std::uint32_t> group_of_operation;
  std::map<TransferKey, std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < trace.operations.size(); ++i) {
    const JobOperation& operation = trace.operations[i];
    auto group = static_cast<std::uint32_t>(groups.size());
    if (!is_computing(operation.work) && operation.work != JobWork::layernorm_grads_all_reduce)
      group = numbers.try_emplace(group_of(operation), group).first->second;
    if (group == groups.size()) groups.emplace_back();
    groups[group].push_back(i);
    group_of_operation.push_back(group);
  }
  // Each group comes after those that it depends on (Kahn's algorithm); none of a circle comes at all.
  std::vector<std::uint32_t> num_awaited(groups.size(), 0), ready;
  std::vector<std::vector<std::uint32_t>> followers(groups.size());
  for (std::uint32_t i = 0; i < awaited_.size(); ++i)
    for (const std::uint32_t before : awaited_[i]) {
      followers[group_of_operation[before]].push_back(group_of_operation[i]);
      ++num_awaited[group_of_operation[i]];
    }
  for (std::uint32_t group = 0; group < groups.size(); ++group)
    if (num_awaited[group] == 0) ready.push_back(group);
  for (std::size_t next = 0; next < ready.size(); ++next) {
    groups_.push_back(std::move(groups[ready[next]]));
    for (const std::uint32_t follower : followers[ready[next]])
      if (--num_awaited[follower] == 0) ready.push_back(follower);
  }
  if (groups_.size() == groups.size()) return;
  Problem problem;
  problem.origin = {OriginKind::file,
                    std::make_shared<const SourceText>(SourceText{trace.file, {}})};
  problem.message =
      "operations of the trace wait for each other in a circle: the order of its passes fits no "
      "schedule";
  throw InputError({problem});
}

std::vector<double> JobReplay::step_times(const std::vector<double>& durations) const {
  std::vector<double> ends(durations.size(), 0), times(trace_->steps.size(), 0);
  for (const std::vector<std::uint32_t>& group : groups_) {
    double begin = 0;
    for (const std::uint32_t operation : group)
      for (const std::uint32_t before : awaited_[operation]) begin = std::max(begin, ends[before]);
    for (const std::uint32_t operation : group) {
      ends[operation] = begin + durations[operation];
      double& time = times[static_cast<std::size_t>(trace_->operations[operation].step)];
      time = std::max(time, ends[operation]);
    }
  }
  return times;
}

StragglerAnalysis analyse_stragglers(const JobTrace& trace) {
  const EnumArray<JobWork, double> ideal = ideal_times(trace);
  const std::array times{MeanPassTimes(trace, JobWork::forward_compute),
                         MeanPassTimes(trace, JobWork::backward_compute)};
  const JobReplay replay(trace);
  const auto replayed = [&](const auto& duration_of) {
    return replay.step_times(mapped(trace.operations, duration_of));
  };
  const auto without = [&](StragglerCause cause, const JobOperation& operation) {
    if (cause == StragglerCause::communication)
      return is_computing(operation.work) ? operation.duration : ideal[operation.work];
    if (!is_pass(operation.work)) return operation.duration;
    const MeanPassTimes& of_pass = times[operation.work == JobWork::forward_compute ? 0 : 1];
    const double worker = of_pass.worker[index_of(trace.worker_of(operation))],
                 peers = of_pass.peers[index_of(operation.stage)];
    if (cause == StragglerCause::uneven_batches) return worker;
    return operation.duration * (cause == StragglerCause::uneven_stages
                                     ? ratio_of(of_pass.stages, peers)
                                     : std::min(1.0, ratio_of(peers, worker)));
  };
  const std::vector<double> actual =
      replayed([](const JobOperation& operation) { return operation.duration; });
  StragglerAnalysis analysis;
  analysis.step_time = mean_of(actual);
  analysis.ideal_time =
      mean_of(replayed([&](const JobOperation& operation) { return ideal[operation.work]; }));
  for (const StragglerCause cause : enumerators<StragglerCause>()) {
    const std::vector<double> fixed =
        replayed([&](const JobOperation& operation) { return without(cause, operation); });
    CauseCost& cost = analysis.causes.emplace_back(CauseCost{cause});
    std::vector<double> saved;
    for (std::size_t i = 0; i < fixed.size(); ++i) saved.push_back(actual[i] - fixed[i]);
    cost.saved = mean_of(saved);
    double squares = 0;
    for (const double each : saved) squares += (each - cost.saved) * (each - cost.saved);
    const auto count = static_cast<double>(saved.size());
    if (saved.size() > 1) cost.standard_error = std::sqrt(squares / (count - 1) / count);
  }
  std::ranges::stable_sort(analysis.causes, std::greater{}, &CauseCost::saved);
  for (int i = 0; i < trace.num_workers(); ++i) {
    const int rank = i / trace.num_stages, stage = i % trace.num_stages;
    const std::size_t worker = index_of(i), of_stage = index_of(stage);
    const double peers = times[0].peers[of_stage] + times[1].peers[of_stage];
    analysis.workers.push_back(
        {rank, stage, ratio_of(times[0].worker[worker] + times[1].worker[worker], peers), 0});
    if (rank == 0)
      analysis.stage_ratios.push_back(ratio_of(peers, times[0].stages + times[1].stages));
  }
  std::ranges::stable_sort(analysis.workers, std::greater{}, &WorkerPace::ratio);
  constexpr std::size_t most_replayed = 8;
  for (std::size_t i = 0; i < std::min(most_replayed, analysis.workers.size()); ++i) {
    WorkerPace& worker = analysis.workers[i];
    if (worker.ratio > 1)
      worker.saved =
          analysis.step_time - mean_of(replayed([&](const JobOperation& operation) {
            return operation.data_rank == worker.data_rank && operation.stage == worker.stage
                       ? without(StragglerCause::slow_worker, operation)
                       : operation.duration;
          }));
  }
  for (const JobWork work : enumerators<JobWork>()) {
    if (std::ranges::count(trace.operations, work, &JobOperation::work) == 0) continue;
    const auto with_this_one = [&](const JobOperation& operation) {
      return operation.work == work ? operation.duration : ideal[operation.work];
    };
    analysis.slowdown_by_work[work] = mean_of(replayed(with_this_one)) / analysis.ideal_time;
  }
  add_scatter(analysis, trace, times);
  return analysis;
}

}  // namespace windtunnel
