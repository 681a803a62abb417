#include "importers/gpu_breakdown.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace windtunnel {
namespace {

using Interval = std::pair<std::int64_t, std::int64_t>;
using Intervals = std::vector<Interval>;

/// Sorted, and joined where they touch.
Intervals united(Intervals intervals) {
  std::sort(intervals.begin(), intervals.end());
  Intervals result;
  for (const Interval& each : intervals) {
    if (!result.empty() && each.first <= result.back().second)
      result.back().second = std::max(result.back().second, each.second);
    else
      result.push_back(each);
  }
  return result;
}

Intervals united(Intervals a, const Intervals& b) {
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

TraceLine line_of(const GpuEvent& event) {
  switch (event.work) {
    case GpuWork::compute:
    case GpuWork::set:
      if (event.phase == ComputePhase::optimizer) return TraceLine::optimizer;
      return event.phase == ComputePhase::codec ? TraceLine::codec : TraceLine::compute;
    case GpuWork::communication:
      return static_cast<TraceLine>(static_cast<int>(TraceLine::tensor_comm) +
                                    static_cast<int>(event.comm));
    case GpuWork::copy:
      return TraceLine::copies;
    case GpuWork::launching:
      return TraceLine::launch_gaps;
    case GpuWork::waiting:
      return TraceLine::pipeline_bubble;
  }
  return TraceLine::idle;
}
static_assert(static_cast<int>(TraceLine::tensor_comm) + static_cast<int>(CommClass::other) ==
              static_cast<int>(TraceLine::other_comm));

bool computes(const GpuEvent& event) {
  return event.work == GpuWork::compute || event.work == GpuWork::set;
}

/// What ran on one GPU, by line and by phase.
struct Ran {
  std::array<Intervals, num_trace_lines> lines;
  std::array<Intervals, num_compute_phases> phases;
  GpuTotals totals;
};

std::string label_of(const GpuTrace& trace, const GpuEvent& event) {
  const std::string& kind = trace.names[event.kind];
  if (event.work == GpuWork::compute) return name_of(event.work);
  if (event.work == GpuWork::communication) return kind;
  return std::string(name_of(event.work)) + (kind.empty() ? "" : " " + kind);
}

std::string kernel_label_of(const GpuTrace& trace, const GpuEvent& event) {
  if (event.work == GpuWork::compute) return trace.names[event.kind];
  const std::string& group = trace.names[event.group];
  return label_of(trace, event) + (group.empty() ? "" : " (" + group + ")");
}

/// Labels are made once a kind of event, not once an event.
class Labels {
 public:
  explicit Labels(const GpuTrace& trace) : trace_(trace) {}
  const std::pair<std::string, std::string>& of(const GpuEvent& event) {
    const auto [found, is_new] = labels_.try_emplace({event.work, event.kind, event.group});
    if (is_new) found->second = {label_of(trace_, event), kernel_label_of(trace_, event)};
    return found->second;
  }

 private:
  const GpuTrace& trace_;
  std::map<std::tuple<GpuWork, std::uint32_t, std::uint32_t>, std::pair<std::string, std::string>>
      labels_;
};

void add(const GpuTrace& trace, const GpuEvent& event, Interval time, Labels& labels, Ran& ran) {
  ran.lines[static_cast<std::size_t>(line_of(event))].push_back(time);
  if (computes(event)) ran.phases[static_cast<std::size_t>(event.phase)].push_back(time);
  if (!is_work(event)) return;
  const auto& [label, kernel] = labels.of(event);
  for (WorkTotal* total :
       {&ran.totals.by_stream[trace.names[event.stream]][label], &ran.totals.by_kernel[kernel]}) {
    ++total->count;
    total->nanoseconds += time.second - time.first;
  }
}

GpuTotals summed(Ran ran) {
  GpuTotals totals = std::move(ran.totals);
  for (Intervals& intervals : ran.lines) intervals = united(std::move(intervals));
  const auto line = [&](TraceLine which) -> const Intervals& {
    return ran.lines[static_cast<std::size_t>(which)];
  };
  const Intervals compute =
      united(united(line(TraceLine::compute), line(TraceLine::optimizer)), line(TraceLine::codec));
  Intervals communication, so_far;
  for (std::size_t i = 0; i < static_cast<std::size_t>(num_comm_classes); ++i) {
    const Intervals& of_class = ran.lines[static_cast<std::size_t>(TraceLine::tensor_comm) + i];
    totals.communicating[i] = length_of(of_class);
    totals.exposed[i] = totals.communicating[i] - common_length(of_class, compute);
    communication = united(std::move(communication), of_class);
  }
  for (std::size_t i = 0; i + 1 < ran.lines.size(); ++i) {
    const std::int64_t before = length_of(so_far);
    so_far = united(std::move(so_far), ran.lines[i]);
    totals.lines[i] = length_of(so_far) - before;
    if (static_cast<TraceLine>(i) == TraceLine::copies) totals.busy = length_of(so_far);
  }
  for (std::size_t i = 0; i < ran.phases.size(); ++i)
    totals.phases[i] = length_of(united(std::move(ran.phases[i])));
  if (totals.window == 0 && !so_far.empty())
    totals.window = so_far.back().second - so_far.front().first;
  totals.lines.back() = totals.window - length_of(so_far);
  totals.compute = length_of(compute);
  totals.communication = length_of(communication);
  totals.overlap = common_length(compute, communication);
  return totals;
}

std::vector<GpuTotals> summed(std::map<std::int64_t, Ran> devices, std::int64_t window) {
  std::vector<GpuTotals> result;
  for (auto& [device, ran] : devices) {
    ran.totals.device = device;
    ran.totals.window = window;
    result.push_back(summed(std::move(ran)));
  }
  return result;
}

/// Within steps that are disjoint and in order.
std::vector<GpuTotals> totals_within(const GpuTrace& trace, std::span<const TraceStep> steps) {
  std::map<std::int64_t, Ran> devices;
  Labels labels(trace);
  std::int64_t window = 0;
  for (const TraceStep& step : steps) window += step.end - step.begin;
  for (const GpuEvent& event : trace.events) {
    Ran& ran = devices[event.device];
    auto step = std::partition_point(
        steps.begin(), steps.end(), [&](const TraceStep& each) { return each.end <= event.begin; });
    for (; step != steps.end() && step->begin < event.end; ++step)
      add(trace, event, {std::max(event.begin, step->begin), std::min(event.end, step->end)},
          labels, ran);
  }
  return summed(std::move(devices), window);
}

}  // namespace

const char* name_of(TraceLine line) {
  switch (line) {
    case TraceLine::compute:
      return "compute";
    case TraceLine::optimizer:
      return "optimizer";
    case TraceLine::codec:
      return "codec";
    case TraceLine::tensor_comm:
    case TraceLine::pipeline_comm:
    case TraceLine::data_comm:
    case TraceLine::embedding_sync:
    case TraceLine::other_comm:
      return name_of(static_cast<CommClass>(static_cast<int>(line) -
                                            static_cast<int>(TraceLine::tensor_comm)));
    case TraceLine::copies:
      return "copies";
    case TraceLine::launch_gaps:
      return "launch_gaps";
    case TraceLine::pipeline_bubble:
      return "pipeline_bubble";
    case TraceLine::idle:
      return "idle";
  }
  return "";
}

bool is_work(const GpuEvent& event) {
  return event.work != GpuWork::launching && event.work != GpuWork::waiting;
}

std::vector<GpuTotals> totals_of(const GpuTrace& trace) {
  std::map<std::int64_t, Ran> devices;
  Labels labels(trace);
  for (const GpuEvent& event : trace.events)
    add(trace, event, {event.begin, event.end}, labels, devices[event.device]);
  return summed(std::move(devices), 0);
}

std::vector<GpuTotals> totals_in_steps(const GpuTrace& trace) {
  return totals_within(trace, trace.steps);
}

std::vector<GpuTotals> totals_in_step(const GpuTrace& trace, const TraceStep& step) {
  return totals_within(trace, {&step, 1});
}

}  // namespace windtunnel
