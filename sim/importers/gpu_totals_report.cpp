#include "importers/gpu_totals_report.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr int name_width = 38, time_width = 10, share_width = 9;

/// Times in seconds, over so many steps.
class PerStep {
 public:
  explicit PerStep(std::int64_t steps) : steps_(static_cast<double>(steps)) {}
  JsonValue seconds(std::int64_t nanoseconds) const {
    return JsonValue(trace_time(nanoseconds) / 1_s / steps_);
  }
  JsonValue count(std::int64_t number) const {
    if (steps_ == 1) return JsonValue(number);
    return JsonValue(static_cast<double>(number) / steps_);
  }
  JsonValue works(const std::map<std::string, WorkTotal>& works) const {
    JsonValue value(JsonValue::Object{});
    for (const auto& [work, total] : works) {
      JsonValue item(JsonValue::Object{});
      item.set("count", count(total.count));
      item.set("time_s", seconds(total.nanoseconds));
      value.set(work, std::move(item));
    }
    return value;
  }
  JsonValue classes(const GpuTotals& gpu) const {
    JsonValue value(JsonValue::Object{});
    for (std::size_t i = 0; i < gpu.communicating.size(); ++i) {
      if (gpu.communicating[i] == 0) continue;
      JsonValue item(JsonValue::Object{});
      item.set("time_s", seconds(gpu.communicating[i]));
      item.set("exposed_s", seconds(gpu.exposed[i]));
      value.set(name_of(static_cast<CommClass>(i)), std::move(item));
    }
    return value;
  }

 private:
  double steps_;
};

/// Whether anything is known of phases.
bool has_phases(const GpuTotals& gpu) {
  return gpu.phases[static_cast<std::size_t>(ComputePhase::unknown)] < gpu.compute;
}

std::vector<std::pair<std::string, WorkTotal>> longest_first(
    const std::map<std::string, WorkTotal>& works) {
  std::vector<std::pair<std::string, WorkTotal>> sorted(works.begin(), works.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.nanoseconds > b.second.nanoseconds;
  });
  return sorted;
}

class Lines {
 public:
  explicit Lines(std::int64_t window) : window_(static_cast<double>(window)) {}
  void add(int depth, const std::string& what, std::int64_t nanoseconds) {
    const double share = window_ > 0 ? static_cast<double>(nanoseconds) / window_ : 0;
    begin(depth, what, nanoseconds);
    text += right_aligned(percent_text(share), share_width) + "\n";
  }
  void add_work(int depth, const std::string& what, const WorkTotal& total) {
    begin(depth, what, total.nanoseconds);
    text += right_aligned(std::to_string(total.count), share_width) + " times\n";
  }
  std::string text;

 private:
  void begin(int depth, const std::string& what, std::int64_t nanoseconds) {
    text += left_aligned(std::string(static_cast<std::size_t>(2 * depth), ' ') + what, name_width) +
            right_aligned(to_text(trace_time(nanoseconds)), time_width);
  }
  double window_;
};

}  // namespace

Seconds trace_time(std::int64_t nanoseconds) {
  constexpr double seconds_per_nanosecond = 1e-9;
  return Seconds{static_cast<double>(nanoseconds) * seconds_per_nanosecond};
}

JsonValue json_of(const GpuTotals& gpu, std::int64_t steps) {
  const PerStep per_step(steps);
  JsonValue value(JsonValue::Object{});
  value.set("device", JsonValue(gpu.device));
  value.set("window_s", per_step.seconds(gpu.window));
  value.set("busy_s", per_step.seconds(gpu.busy));
  value.set("idle_s", per_step.seconds(gpu.idle()));
  value.set("compute_s", per_step.seconds(gpu.compute));
  value.set("communication_s", per_step.seconds(gpu.communication));
  value.set("overlap_s", per_step.seconds(gpu.overlap));
  value.set("exposed_communication_s", per_step.seconds(gpu.exposed_communication()));
  JsonValue lines(JsonValue::Object{}), phases(JsonValue::Object{}), streams(JsonValue::Object{});
  for (std::size_t i = 0; i < gpu.lines.size(); ++i)
    lines.set(name_of(static_cast<TraceLine>(i)), per_step.seconds(gpu.lines[i]));
  value.set("breakdown_s", std::move(lines));
  for (std::size_t i = 0; i < gpu.phases.size(); ++i)
    if (gpu.phases[i] > 0)
      phases.set(name_of(static_cast<ComputePhase>(i)), per_step.seconds(gpu.phases[i]));
  value.set("compute_by_phase_s", std::move(phases));
  value.set("communication_by_class", per_step.classes(gpu));
  value.set("kernels", per_step.works(gpu.by_kernel));
  for (const auto& [stream, works] : gpu.by_stream) streams.set(stream, per_step.works(works));
  value.set("streams", std::move(streams));
  return value;
}

const char* words_for(CommClass comm) {
  switch (comm) {
    case CommClass::tensor:
      return "tensor parallel";
    case CommClass::pipeline:
      return "pipeline parallel";
    case CommClass::data:
      return "data parallel";
    case CommClass::embedding:
      return "embedding";
    case CommClass::other:
      return "other or unnamed groups";
  }
  return "";
}

std::string text_of(const GpuTotals& gpu, const std::string& over) {
  Lines lines(gpu.window);
  lines.add(1, "compute", gpu.compute);
  for (std::size_t i = 0; has_phases(gpu) && i < gpu.phases.size(); ++i)
    if (gpu.phases[i] > 0) lines.add(2, name_of(static_cast<ComputePhase>(i)), gpu.phases[i]);
  lines.add(1, "communication", gpu.communication);
  lines.add(2, "hidden behind compute", gpu.overlap);
  lines.add(2, "exposed", gpu.exposed_communication());
  for (std::size_t i = 0; i < gpu.exposed.size(); ++i)
    if (gpu.communicating[i] > 0)
      lines.add(3, words_for(static_cast<CommClass>(i)), gpu.exposed[i]);
  lines.add(1, "copies alone", gpu.of(TraceLine::copies));
  lines.add(1, "idle", gpu.idle());
  for (const TraceLine why : {TraceLine::launch_gaps, TraceLine::pipeline_bubble})
    if (gpu.of(why) > 0)
      lines.add(2, why == TraceLine::launch_gaps ? "launching" : "waiting for others", gpu.of(why));
  lines.text += "  kernels\n";
  for (const auto& [kernel, total] : longest_first(gpu.by_kernel)) lines.add_work(2, kernel, total);
  for (const auto& [stream, works] : gpu.by_stream) {
    lines.text += "  stream " + stream + "\n";
    for (const auto& [work, total] : works) lines.add_work(2, work, total);
  }
  return over + "\n" + lines.text;
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
  std::string names;
  for (std::size_t i = 0; i < std::min(most_named, trace.unknown_kernels.size()); ++i) {
    const std::string& name = trace.unknown_kernels[i].first;
    names += (i > 0 ? ", " : "") + name.substr(0, longest_name) +
             (name.size() > longest_name ? "…" : "");
  }
  if (trace.unknown_kernels.size() > most_named) names += ", …";
  return percent_text(trace.unknown_share()) +
         " of the kernels' time is in kernels whose names say nothing; it counts as computing (" +
         names + ")";
}

}  // namespace windtunnel
