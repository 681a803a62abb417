#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "importers/gpu_totals_report.hpp"
#include "importers/importer.hpp"
#include "importers/rank_report.hpp"
#include "importers/traced_iteration.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// A trace with its totals.
struct ReadTrace {
  GpuTrace trace;  ///< its events are dropped once they are summed
  std::size_t num_events = 0;
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();  ///< of its first work
  std::vector<GpuTotals> whole;
  std::vector<std::vector<GpuTotals>> steps;
};

ReadTrace read(const std::filesystem::path& file) {
  TextInput input(file);
  ReadTrace read;
  read.trace = read_gpu_trace(input);
  read.num_events = static_cast<std::size_t>(
      std::count_if(read.trace.events.begin(), read.trace.events.end(), is_work));
  read.whole = totals_of(read.trace);
  for (const TraceStep& step : read.trace.steps)
    read.steps.push_back(totals_in_step(read.trace, step));
  for (const GpuEvent& event : read.trace.events)
    if (is_work(event)) read.begin = std::min(read.begin, event.begin);
  read.trace.events = {};
  return read;
}

/// Every file's problems at once; by rank.
std::vector<ReadTrace> read_all(const std::vector<std::filesystem::path>& files) {
  std::vector<ReadTrace> traces;
  Problems problems;
  for (const auto& file : files) try {
      traces.push_back(read(file));
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems()) problems.add(problem);
    }
  problems.throw_if_any();
  std::stable_sort(traces.begin(), traces.end(), [](const ReadTrace& a, const ReadTrace& b) {
    return a.trace.rank < b.trace.rank;
  });
  return traces;
}

/// What may make several files no traces of one job.
std::vector<std::string> doubts_about(const std::vector<ReadTrace>& traces) {
  std::vector<std::string> doubts;
  std::set<std::int64_t> worlds;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const GpuTrace& trace = traces[i].trace;
    worlds.insert(trace.world_size);
    if (i > 0 && trace.rank == traces[i - 1].trace.rank)
      doubts.push_back(trace.file + " and " + traces[i - 1].trace.file +
                       (trace.rank < 0
                            ? " do not say their ranks"
                            : " both say that they are of rank " + std::to_string(trace.rank)));
    if (trace.unlaunched > 0)
      doubts.push_back(trace.file + ": " + std::to_string(trace.unlaunched) +
                       " kernels were launched before the trace began; their phase is unknown");
  }
  for (const ReadTrace& read : traces)
    if (const std::string note = unknown_kernels_note(read.trace); !note.empty())
      doubts.push_back(read.trace.file + ": " + note);
  if (worlds.size() > 1) doubts.emplace_back("the files are of jobs of different sizes");
  return doubts;
}

JsonValue json_of(const ReadTrace& read) {
  const GpuTrace& trace = read.trace;
  JsonValue value(JsonValue::Object{});
  value.set("file", JsonValue(trace.file));
  value.set("kind", JsonValue(std::string(trace.kind == TraceKind::real ? "real" : "simulated")));
  if (trace.rank >= 0) value.set("rank", JsonValue(trace.rank));
  if (trace.world_size >= 0) value.set("world_size", JsonValue(trace.world_size));
  if (!trace.gpu.empty()) value.set("gpu", JsonValue(trace.gpu));
  value.set("events", JsonValue(static_cast<std::int64_t>(read.num_events)));
  value.set("unknown_kernels_share", JsonValue(trace.unknown_share()));
  JsonValue::Array gpus, steps;
  for (const GpuTotals& gpu : read.whole) gpus.push_back(json_of(gpu));
  value.set("gpus", JsonValue(std::move(gpus)));
  for (std::size_t i = 0; i < read.steps.size(); ++i) {
    JsonValue step(JsonValue::Object{});
    JsonValue::Array of_step;
    for (const GpuTotals& gpu : read.steps[i]) of_step.push_back(json_of(gpu));
    step.set("name", JsonValue(trace.steps[i].name));
    step.set("gpus", JsonValue(std::move(of_step)));
    steps.push_back(std::move(step));
  }
  value.set("steps", JsonValue(std::move(steps)));
  return value;
}

std::string header(const ReadTrace& read) {
  const std::size_t steps = read.steps.size();
  return std::filesystem::path(read.trace.file).filename().string() + ": " + described(read.trace) +
         "; " + std::to_string(read.num_events) + " pieces of GPU work, " + std::to_string(steps) +
         (steps == 1 ? " profiler step\n" : " profiler steps\n");
}

constexpr int row_width = 46, column_width = 10;

std::string table_head(const std::string& what) {
  std::string text = "\n" + left_aligned(what, row_width);
  for (const char* column : {"time", "compute", "exposed", "hidden", "copies", "idle"})
    text += right_aligned(column, column_width);
  return text + "\n";
}

std::string table_row(const std::string& what, const GpuTotals& gpu) {
  std::string text = left_aligned("  " + what, row_width);
  for (const std::int64_t time : {gpu.window, gpu.compute, gpu.exposed_communication(), gpu.overlap,
                                  gpu.of(TraceLine::copies), gpu.idle()})
    text += right_aligned(to_text(trace_time(time)), column_width);
  return text + "\n";
}

/// The one GPU of one file, in full.
std::string details(const ReadTrace& read) {
  const GpuTotals& gpu = read.whole.front();
  std::string text =
      "\n" + text_of(gpu, gpu_name(read.trace, gpu.device) + ", " +
                              to_text(trace_time(gpu.window)) + " from its first work to its last");
  if (!read.steps.empty()) text += table_head("steps");
  for (std::size_t i = 0; i < read.steps.size(); ++i)
    for (const GpuTotals& each : read.steps[i]) text += table_row(read.trace.steps[i].name, each);
  return text;
}

/// The traces as ranks of one job; none where ranks are missing or given twice.
std::vector<RankTrace> ranks_of(std::vector<ReadTrace>& traces) {
  std::vector<RankTrace> ranks;
  for (ReadTrace& read : traces) {
    const bool is_one_rank = read.trace.rank >= 0 && read.whole.size() == 1;
    if (!is_one_rank || (!ranks.empty() && ranks.back().rank == read.trace.rank)) return {};
    const GpuTotals& gpu = read.whole.front();
    RankTrace rank;
    rank.rank = read.trace.rank;
    rank.device = gpu.device;
    rank.compute = gpu.compute;
    rank.num_steps = std::max<std::int64_t>(1, static_cast<std::int64_t>(read.steps.size()));
    rank.begin = read.begin;
    rank.calls = std::move(read.trace.calls);
    rank.names = std::move(read.trace.names);
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

/// The set for calibrate, if one is asked for.
void write_set(const std::vector<ReadTrace>& traces, const ImportRequest& request,
               const Library& library, Imported& imported) {
  if (request.output.empty()) return;
  std::vector<const GpuTrace*> of_files;
  for (const ReadTrace& read : traces) of_files.push_back(&read.trace);
  TracedIteration iteration = traced_iteration(of_files, request, library);
  imported.document = std::move(iteration.set);
  imported.warnings = std::move(iteration.warnings);
  imported.found.set("iteration_time_s", JsonValue(iteration.seconds));
}

/// What the ranks say together.
void compare_ranks(std::vector<ReadTrace>& traces, Imported& imported) {
  const std::vector<RankTrace> ranks = ranks_of(traces);
  if (ranks.size() < 2) return;
  const RankVerdict verdict = judge_ranks(ranks);
  if (verdict.matched.num_unmatched > 0)
    imported.notes.push_back(
        grouped_text(static_cast<double>(verdict.matched.num_unmatched)) +
        " calls of NCCL not matched across ranks: " +
        (verdict.matched.calls.empty() && verdict.matched.groups.empty()
             ? "they do not say their group (PyTorch 2.2 and newer do), or no two ranks of one are "
               "given"
             : "those of other ranks in their group are missing or different"));
  imported.text += text_of(verdict, ranks);
  imported.found.set("across_ranks", json_of(verdict, ranks));
}

std::string row_name(const ReadTrace& read, const GpuTotals& gpu) {
  if (read.trace.kind == TraceKind::simulated) return gpu_name(read.trace, gpu.device);
  const std::string rank =
      read.trace.rank < 0 ? "rank ?" : "rank " + std::to_string(read.trace.rank);
  return rank + ", " + gpu_name(read.trace, gpu.device);
}

}  // namespace

Imported import_kineto(const ImportRequest& request, const Library& library) {
  std::vector<ReadTrace> traces = read_all(request.inputs);
  Imported imported;
  imported.notes = doubts_about(traces);
  write_set(traces, request, library, imported);
  JsonValue::Array ranks;
  std::size_t num_gpus = 0;
  for (const ReadTrace& read : traces) {
    ranks.push_back(json_of(read));
    imported.text += header(read);
    num_gpus += read.whole.size();
  }
  imported.found.set("traces", JsonValue(std::move(ranks)));
  if (num_gpus == 1) {
    imported.text += details(traces.front());
    return imported;
  }
  imported.text += table_head("from first work to last");
  for (const ReadTrace& read : traces)
    for (const GpuTotals& gpu : read.whole) imported.text += table_row(row_name(read, gpu), gpu);
  compare_ranks(traces, imported);
  return imported;
}

}  // namespace windtunnel
