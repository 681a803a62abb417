#include "importers/gpu_totals.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

#include "core/json_build.hpp"
#include "core/text_list.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"

namespace windtunnel {
namespace {

Intervals joined(Intervals a, const Intervals& b) {
  a.insert(a.end(), b.begin(), b.end());
  return united(std::move(a));
}

std::int64_t length_of(const Intervals& intervals) {
  std::int64_t length = 0;
  for (const auto& [begin, end] : intervals) length += end - begin;
  return length;
}

/// Length of what both have; each united.
std::int64_t common_length(const Intervals& a, const Intervals& b) {
  std::int64_t length = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    length += std::max<std::int64_t>(
        0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    (a[i].second < b[j].second ? i : j) += 1;
  }
  return length;
}

constexpr TraceLine line_of(CommClass comm) {
  return static_cast<TraceLine>(static_cast<int>(TraceLine::tensor_comm) + static_cast<int>(comm));
}
static_assert(line_of(CommClass::other) == TraceLine::other_comm);

TraceLine line_of(const GpuEvent& event) {
  switch (event.work) {
    case GpuWork::compute:
    case GpuWork::set:
      if (event.phase == ComputePhase::optimizer) return TraceLine::optimizer;
      return event.phase == ComputePhase::codec ? TraceLine::codec : TraceLine::compute;
    case GpuWork::communication:
      return line_of(event.comm);
    case GpuWork::copy:
      return TraceLine::copies;
    case GpuWork::launching:
      return TraceLine::launch_gaps;
    case GpuWork::waiting:
      return TraceLine::pipeline_bubble;
  }
  return TraceLine::idle;
}

/// Work of one GPU, by line and by phase.
struct GpuRecord {
  EnumArray<TraceLine, Intervals> lines;
  EnumArray<ComputePhase, Intervals> phases;
  GpuTotals totals;
};

/// Label of an event among those of its stream, and among kernels.
std::pair<std::string, std::string> labels_of(const GpuEvent& event, const GpuTrace& trace) {
  const std::string &kind = trace.names[event.kind], &group = trace.names[event.group];
  std::string label = name_of(event.work);
  if (event.work == GpuWork::compute) return {label, kind};
  if (event.work == GpuWork::communication)
    label = kind;
  else if (!kind.empty())
    label += " " + kind;
  return {label, label + (group.empty() ? "" : " (" + group + ")")};
}

GpuTotals summed(GpuRecord record) {
  GpuTotals totals = std::move(record.totals);
  for (Intervals& intervals : record.lines) intervals = united(std::move(intervals));
  const Intervals compute =
      joined(joined(record.lines[TraceLine::compute], record.lines[TraceLine::optimizer]),
             record.lines[TraceLine::codec]);
  Intervals communication, so_far;
  for (const CommClass comm : enumerators<CommClass>()) {
    const Intervals& of_class = record.lines[line_of(comm)];
    totals.communicating[comm] = length_of(of_class);
    totals.exposed[comm] = totals.communicating[comm] - common_length(of_class, compute);
    communication = joined(std::move(communication), of_class);
  }
  for (std::size_t i = 0; i + 1 < record.lines.size(); ++i) {
    const std::int64_t before = length_of(so_far);
    so_far = joined(std::move(so_far), record.lines[i]);
    totals.lines[i] = length_of(so_far) - before;
    if (static_cast<TraceLine>(i) == TraceLine::copies) totals.busy = length_of(so_far);
  }
  for (std::size_t i = 0; i < record.phases.size(); ++i)
    totals.phases[i] = length_of(united(std::move(record.phases[i])));
  if (totals.window == 0 && !so_far.empty())
    totals.window = so_far.back().second - so_far.front().first;
  totals.lines.back() = totals.window - length_of(so_far);
  totals.compute = length_of(compute);
  totals.communication = length_of(communication);
  totals.overlap = common_length(compute, communication);
  return totals;
}

}  // namespace

const EnumArray<TraceLine, TraceLineWords> trace_lines{{{
    {"compute", "compute", "compute"},
    {"optimizer", "optimizer", "optimizer"},
    {"codec", "codec", "codec"},
    {"tensor_comm", "tensor parallel, exposed", "tensor_comm"},
    {"pipeline_comm", "pipeline parallel, exposed", "pipeline_comm"},
    {"data_comm", "data parallel, exposed", "data_comm"},
    {"embedding_sync", "embedding, exposed", "embedding_sync"},
    {"other_comm", "other or unnamed groups, exposed", "other"},
    {"copies", "copies alone", "copies"},
    {"launch_gaps", "launching", "peer_wait"},
    {"pipeline_bubble", "waiting for others", "pipeline_bubble"},
    {"idle", "idle, the trace does not say why", "unexplained"},
}}};

bool is_work(const GpuEvent& event) {
  return event.work != GpuWork::launching && event.work != GpuWork::waiting;
}

std::vector<GpuTotals> totals_of(const GpuTrace& trace, std::span<const TraceStep> steps) {
  using Limits = std::numeric_limits<std::int64_t>;
  const TraceStep always{{}, Limits::min(), Limits::max()};
  std::int64_t window = 0;
  for (const TraceStep& step : steps) window += step.end - step.begin;
  if (steps.empty()) steps = {&always, 1};
  std::map<std::int64_t, GpuRecord> devices;
  std::map<std::tuple<GpuWork, std::uint32_t, std::uint32_t>, std::pair<std::string, std::string>>
      labels;  // made once a kind of event, not once an event
  for (const GpuEvent& event : trace.events) {
    GpuRecord& record = devices[event.device];
    const auto [labelled, is_new] = labels.try_emplace({event.work, event.kind, event.group});
    if (is_new) labelled->second = labels_of(event, trace);
    const auto& [label, kernel] = labelled->second;
    auto step = std::ranges::partition_point(
        steps, [&](const TraceStep& each) { return each.end <= event.begin; });
    for (; step != steps.end() && step->begin < event.end; ++step) {
      const std::int64_t begin = std::max(event.begin, step->begin),
                         end = std::min(event.end, step->end);
      record.lines[line_of(event)].emplace_back(begin, end);
      if (event.work == GpuWork::compute || event.work == GpuWork::set)
        record.phases[event.phase].emplace_back(begin, end);
      if (!is_work(event)) continue;
      for (WorkTotal* total : {&record.totals.by_stream[trace.names[event.stream]][label],
                               &record.totals.by_kernel[kernel]}) {
        ++total->count;
        total->nanoseconds += end - begin;
      }
    }
  }
  std::vector<GpuTotals> result;
  for (auto& [device, record] : devices) {
    record.totals.device = device;
    record.totals.window = window;
    result.push_back(summed(std::move(record)));
  }
  return result;
}

Seconds trace_time(std::int64_t nanoseconds) {
  constexpr double seconds_per_nanosecond = 1e-9;
  return Seconds{static_cast<double>(nanoseconds) * seconds_per_nanosecond};
}

JsonValue json_of(const GpuTotals& gpu, std::int64_t steps) {
  const auto number = static_cast<double>(steps);
  const auto seconds = [&](std::int64_t nanoseconds) {
    return trace_time(nanoseconds) / 1_s / number;
  };
  const auto works_json = [&](const std::map<std::string, WorkTotal>& works) {
    return object_by_key(works, [&](const WorkTotal& total) {
      return object_of(
          {{"count", steps == 1 ? JsonValue(total.count)
                                : JsonValue(static_cast<double>(total.count) / number)},
           {"time_s", seconds(total.nanoseconds)}});
    });
  };
  JsonValue lines = empty_object(), phases = lines, classes = lines;
  for (const TraceLine line : enumerators<TraceLine>())
    lines.set(trace_lines[line].name, JsonValue(seconds(gpu.lines[line])));
  for (const ComputePhase phase : enumerators<ComputePhase>())
    if (gpu.phases[phase] > 0) phases.set(name_of(phase), JsonValue(seconds(gpu.phases[phase])));
  for (const CommClass comm : enumerators<CommClass>())
    if (gpu.communicating[comm] > 0)
      classes.set(trace_lines[line_of(comm)].name,
                  object_of({{"time_s", seconds(gpu.communicating[comm])},
                             {"exposed_s", seconds(gpu.exposed[comm])}}));
  return object_of({{"device", gpu.device},
                    {"window_s", seconds(gpu.window)},
                    {"busy_s", seconds(gpu.busy)},
                    {"idle_s", seconds(gpu.idle())},
                    {"compute_s", seconds(gpu.compute)},
                    {"not_computing_s", seconds(gpu.window - gpu.compute)},
                    {"communication_s", seconds(gpu.communication)},
                    {"overlap_s", seconds(gpu.overlap)},
                    {"exposed_communication_s", seconds(gpu.exposed_communication())},
                    {"breakdown_s", lines},
                    {"compute_by_phase_s", phases},
                    {"communication_by_class", classes},
                    {"kernels", works_json(gpu.by_kernel)},
                    {"streams", object_by_key(gpu.by_stream, works_json)}});
}

html::FigureRows time_rows() {
  html::FigureRows rows;
  const auto add = [&](const std::string& label, const std::string& pointer) {
    rows.push_back({label, pointer, html::text_of_time, html::Change::difference});
  };
  const auto add_classes = [&](const std::string& before, const std::string& after) {
    for (const CommClass comm : enumerators<CommClass>()) {
      const auto& [name, words, colour] = trace_lines[line_of(comm)];
      const std::string text = words;
      add("  " + text.substr(0, text.find(", exposed")), before + name + after);
    }
  };
  add("compute", "/compute_s");
  for (const auto& [phase, value] : all_names<ComputePhase>())
    add("  " + phase, "/compute_by_phase_s/" + phase);
  add("not computing", "/not_computing_s");
  add("exposed communication", "/exposed_communication_s");
  add_classes("/breakdown_s/", "");
  add("copies alone", "/breakdown_s/copies");
  add("idle", "/idle_s");
  add("  launching", "/breakdown_s/launch_gaps");
  add("  waiting for others", "/breakdown_s/pipeline_bubble");
  add("all communication", "/communication_s");
  add_classes("/communication_by_class/", "/time_s");
  add("  hidden behind computing", "/overlap_s");
  return rows;
}

std::vector<document::Table> totals_of_work(const JsonValue& gpu) {
  const html::DataView view{&gpu};
  const double window = view.amount("/window_s");
  std::vector<document::Table> tables{{"wrr", {{"", "time", "share"}}}};
  constexpr double rounding = 1e-6;  // of the window: an overlap of a nanosecond is none
  for (const html::FigureRow& row : time_rows())
    if (const double time = view.amount(row.pointer);
        time > rounding * window || row.label.front() != ' ')
      tables.front().rows.push_back(
          {row.label, row.text(time), percent_text(window > 0 ? time / window : 0)});
  const auto add = [&](const std::string& heading, const JsonValue& works) {
    document::Table table{"wrr", {{heading, "time", "calls"}}};
    JsonValue::Object sorted = works.object();
    const auto time_of = [](const JsonValue::Member& work) {
      return html::DataView{&work.value}.amount("/time_s");
    };
    std::ranges::stable_sort(sorted, std::greater{}, time_of);
    for (const JsonValue::Member& work : sorted)
      table.rows.push_back(
          {work.key, html::text_of_time(time_of(work)), canonical_text(*work.value.find("count"))});
    tables.push_back(std::move(table));
  };
  add("kernels", *gpu.find("kernels"));
  for (const JsonValue::Member& stream : gpu.find("streams")->object())
    add("stream " + stream.key, stream.value);
  return tables;
}

std::string described(const GpuTrace& trace) {
  if (trace.kind == TraceKind::simulated)
    return "simulated" + (trace.job.empty() ? "" : ", " + trace.job);
  std::string text = "PyTorch's profiler";
  if (trace.rank >= 0) text += ", rank " + std::to_string(trace.rank);
  if (trace.rank >= 0 && trace.world_size > 0) text += " of " + std::to_string(trace.world_size);
  return text + (trace.gpu.empty() ? "" : ", " + trace.gpu);
}

std::string gpu_name(const GpuTrace& trace, std::int64_t device) {
  const auto process = trace.processes.find(device);
  if (trace.kind == TraceKind::simulated && process != trace.processes.end())
    return process->second;
  return "GPU " + std::to_string(device);
}

std::string unknown_kernels_note(const GpuTrace& trace) {
  if (trace.unknown_kernels.empty()) return {};
  constexpr std::size_t most_named = 3, longest_name = 60;
  const auto shortened = [](const auto& kernel) {
    const std::string& name = kernel.first;
    return name.substr(0, longest_name) + (name.size() > longest_name ? "…" : "");
  };
  return percent_text(trace.unknown_share()) +
         " of the kernels' time is in kernels whose names say nothing; it counts as computing (" +
         listed(trace.unknown_kernels, shortened, most_named) + ")";
}

}  // namespace windtunnel
