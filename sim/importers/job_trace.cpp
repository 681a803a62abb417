#include "importers/job_trace.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/work_note.hpp"
#include "importers/trace_event_reader.hpp"

namespace windtunnel {
namespace {

using detail::TraceEvent;
using detail::TraceEventReader;
using detail::TraceRoot;

constexpr std::array<const char*, num_job_works> names{"forward-compute",
                                                       "backward-compute",
                                                       "forward-send",
                                                       "forward-recv",
                                                       "backward-send",
                                                       "backward-recv",
                                                       "params-all-gather",
                                                       "grads-reduce-scatter",
                                                       "separate-grads-all-reduce",
                                                       "layernorm-grads-all-reduce",
                                                       "embedding-grads-all-reduce",
                                                       "optimizer-clip-main-grad",
                                                       "optimizer",
                                                       "gc"};

std::optional<JobWork> work_named(const std::string& name) {
  for (int i = 0; i < num_job_works; ++i)
    if (name == names[static_cast<std::size_t>(i)]) return static_cast<JobWork>(i);
  return std::nullopt;
}

constexpr std::int64_t most_ranks = 100'000, most_operations = 20'000'000;

/// Takes the events one by one.
class JobTraceBuilder {
 public:
  explicit JobTraceBuilder(TraceEventReader& reader) : reader_(reader) {}

  void take(const TraceEvent& event) {
    const std::string &phase = event.field("ph"), &name = event.field("name");
    if (phase == "M" && name == "thread_name") return take_thread(event);
    if (phase != "X") return;
    if (const auto work = work_named(name)) take_operation(event, *work);
  }

  JobTrace finish() {
    for (Found& each : found_) {
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
    return assembled();
  }

 private:
  struct Found {
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
      return reader_.problem("/traceEvents/" + std::to_string(event.number),
                             "\"" + name + "\" names no stage below 100000");
    stages_[{static_cast<int>(*rank), *thread}] = stage;
  }

  std::optional<std::int64_t> number(const TraceEvent& event, const std::string& key) {
    const auto value = event.whole_argument(key);
    if (value && *value >= 0) return value;
    reader_.problem("/traceEvents/" + std::to_string(event.number) + "/args/" + key,
                    key + " is no whole number from 0");
    return std::nullopt;
  }

  /// Clocks of hosts differ: a transfer can seem to end a little before its last member began, and takes no time then.
  std::optional<std::int64_t> duration_of(const TraceEvent& event) {
    constexpr std::int64_t clock_error = 10'000'000;  // ns; the authors' tolerance
    const auto duration = detail::to_nanoseconds_exactly(event.field("dur"));
    if (duration && *duration < 0 && *duration > -clock_error) return 0;
    return reader_.time(event, "dur");
  }

  void take_operation(const TraceEvent& event, JobWork work) {
    const auto begin = reader_.time(event, "ts"), duration = duration_of(event);
    const auto rank = reader_.whole(event, "pid"), thread = reader_.whole(event, "tid");
    const auto step = number(event, "step"), sequence = number(event, "seq_id");
    if (!begin || !duration || !rank || !thread || !step || !sequence) return;
    if (*rank >= most_ranks || *sequence >= most_ranks)
      return reader_.problem("/traceEvents/" + std::to_string(event.number),
                             "a rank or seq_id of 100000 or more");
    if (is_pass(work) && event.whole_argument("model_chunk").value_or(0) > 0)
      reader_.stop("/traceEvents/" + std::to_string(event.number) + "/args/model_chunk",
                   "an interleaved schedule, which is not replayed",
                   "one model chunk per stage is");
    Found found;
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

  using Identity = std::tuple<JobWork, int>;  ///< work, sequence
  /// What the workers of one stage do in every step: what most of them do.
  using Program = std::set<Identity>;

  JobTrace assembled() {
    JobTrace trace;
    std::map<std::int64_t, std::vector<JobOperation>> by_step;
    for (const Found& each : found_) {
      trace.num_data_ranks = std::max(trace.num_data_ranks, each.operation.data_rank + 1);
      trace.num_stages = std::max(trace.num_stages, each.operation.stage + 1);
      by_step[each.step].push_back(each.operation);
    }
    const std::map<int, Program> programs = programs_of(by_step);
    for (auto& [step, operations] : by_step) {
      if (!is_complete(operations, programs, trace)) {
        trace.incomplete_steps.push_back(step);
        continue;
      }
      const int number = static_cast<int>(trace.steps.size());
      trace.steps.push_back(step);
      for (JobOperation& operation : operations) operation.step = number;
      std::sort(operations.begin(), operations.end(),
                [](const JobOperation& a, const JobOperation& b) {
                  return std::tuple{a.data_rank, a.stage, a.work, a.sequence} <
                         std::tuple{b.data_rank, b.stage, b.work, b.sequence};
                });
      trace.operations.insert(trace.operations.end(), operations.begin(), operations.end());
    }
    return trace;
  }

  static std::map<int, Program> programs_of(
      const std::map<std::int64_t, std::vector<JobOperation>>& by_step) {
    std::map<int, std::map<Program, int>> seen;  // how many workers, by stage
    for (const auto& [step, operations] : by_step) {
      std::map<std::pair<int, int>, Program> done;
      for (const JobOperation& operation : operations)
        done[{operation.data_rank, operation.stage}].insert({operation.work, operation.sequence});
      for (const auto& [worker, program] : done) ++seen[worker.second][program];
    }
    std::map<int, Program> programs;
    for (const auto& [stage, counts] : seen)
      programs[stage] =
          std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
            return a.second < b.second;
          })->first;
    return programs;
  }

  static bool is_complete(const std::vector<JobOperation>& operations,
                          const std::map<int, Program>& programs, const JobTrace& trace) {
    std::map<std::pair<int, int>, Program> done;
    for (const JobOperation& operation : operations)
      if (!done[{operation.data_rank, operation.stage}]
               .insert({operation.work, operation.sequence})
               .second)
        return false;
    if (static_cast<int>(done.size()) != trace.num_workers()) return false;
    return std::all_of(done.begin(), done.end(), [&](const auto& worker) {
      return worker.second == programs.at(worker.first.second);
    });
  }

  TraceEventReader& reader_;
  std::map<std::pair<int, std::int64_t>, int> stages_;  ///< by data-parallel rank and thread
  std::vector<Found> found_;
};

}  // namespace

const char* name_of(JobWork work) { return names[static_cast<std::size_t>(work)]; }

bool is_pass(JobWork work) {
  return work == JobWork::forward_compute || work == JobWork::backward_compute;
}

bool is_computing(JobWork work) {
  return is_pass(work) || work == JobWork::optimizer || work == JobWork::garbage_collection;
}

JobTrace read_job_trace(TextInput& input) {
  const Doing reading("reading a trace", "bytes");
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

}  // namespace windtunnel
