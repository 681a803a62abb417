#include "importers/gpu_trace.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/object_reader.hpp"

namespace windtunnel {
namespace {

constexpr double nanoseconds_per_microsecond = 1000;
constexpr double latest = 4e15;  ///< microseconds: 127 years, and whole nanoseconds still fit

using Interval = std::pair<std::int64_t, std::int64_t>;

/// Sorted, and joined where they touch.
std::vector<Interval> united(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<Interval> result;
  for (const Interval& each : intervals) {
    if (!result.empty() && each.first <= result.back().second)
      result.back().second = std::max(result.back().second, each.second);
    else
      result.push_back(each);
  }
  return result;
}

std::int64_t length_of(const std::vector<Interval>& intervals) {
  std::int64_t length = 0;
  for (const auto& [begin, end] : intervals) length += end - begin;
  return length;
}

/// Length of what both have; each united.
std::int64_t common_length(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::int64_t length = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    length += std::max<std::int64_t>(
        0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    (a[i].second < b[j].second ? i : j) += 1;
  }
  return length;
}

/// "AllReduce" of "ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)".
std::string collective_in(const std::string& kernel) {
  const std::size_t from = kernel.find('_');
  if (from == std::string::npos) return "other";
  return kernel.substr(from + 1, kernel.find_first_of("_(", from + 1) - from - 1);
}

/// "DtoH" of "Memcpy DtoH (Device -> Pinned)".
std::string direction_in(const std::string& name) {
  const std::size_t from = name.find(' ');
  if (from == std::string::npos) return "other";
  return name.substr(from + 1, name.find(' ', from + 1) - from - 1);
}

bool is_text(const JsonValue* value, const char* text) {
  return value != nullptr && value->is_string() && value->string() == text;
}

std::optional<GpuWork> work_of(const JsonValue& event) {
  const JsonValue* category = event.find("cat");
  if (!is_text(event.find("ph"), "X")) return std::nullopt;
  if (is_text(category, "kernel")) return GpuWork::compute;
  if (is_text(category, "gpu_memcpy")) return GpuWork::copy;
  if (is_text(category, "gpu_memset")) return GpuWork::set;
  return std::nullopt;
}

std::string stream_of(ObjectReader& event) {
  const JsonValue* stream = event.require("tid", "the stream");
  if (stream == nullptr) return {};
  return stream->is_string() ? stream->string() : text_for_message(*stream);
}

/// Every time in whole nanoseconds: the clock's microseconds have three decimals.
std::int64_t to_nanoseconds(double microseconds) {
  return std::llround(microseconds * nanoseconds_per_microsecond);
}

GpuEvent read_event(JsonValue& value, GpuWork work, const std::string& pointer,
                    Problems& problems) {
  ObjectReader reader(value, pointer, problems);
  GpuEvent event;
  const std::string name = reader.required_string("name");
  event.work = work == GpuWork::compute && name.starts_with("nccl") ? GpuWork::communication : work;
  if (event.work == GpuWork::communication) event.kind = collective_in(name);
  if (event.work == GpuWork::copy) event.kind = direction_in(name);
  event.stream = stream_of(reader);
  event.device = reader.required_int("pid", 0, 1 << 20);
  event.begin = to_nanoseconds(reader.required_number("ts", 0, latest));
  event.end = event.begin + to_nanoseconds(reader.required_number("dur", 0, latest));
  return event;
}

std::string label_of(const GpuEvent& event) {
  return std::string(name_of(event.work)) + (event.kind.empty() ? "" : " " + event.kind);
}

}  // namespace

const char* name_of(GpuWork work) {
  switch (work) {
    case GpuWork::compute:
      return "compute";
    case GpuWork::communication:
      return "nccl";
    case GpuWork::copy:
      return "memcpy";
    case GpuWork::set:
      return "memset";
  }
  return "";
}

GpuTrace read_gpu_trace(JsonValue& document, Problems& problems) {
  GpuTrace trace;
  ObjectReader root(document, {}, problems);
  if (const JsonValue* info = root.take("distributedInfo"); info != nullptr)
    if (const JsonValue* rank = info->find("rank"); rank != nullptr && rank->is_integer())
      trace.rank = std::get<std::int64_t>(rank->content);
  JsonValue* events = root.require("traceEvents", "the list of the profiler's events");
  if (events == nullptr) return trace;
  if (!events->is_array()) {
    root.problem("traceEvents", "traceEvents is no list");
    return trace;
  }
  for (std::size_t i = 0; i < events->array().size(); ++i) {
    JsonValue& value = events->array()[i];
    const JsonValue* name = value.find("name");
    if (name != nullptr && name->is_string() && name->string().starts_with("ProfilerStep#") &&
        is_text(value.find("cat"), "user_annotation"))
      ++trace.num_steps;
    if (const auto work = work_of(value))
      trace.events.push_back(
          read_event(value, *work, "/traceEvents/" + std::to_string(i), problems));
  }
  if (trace.events.empty() && problems.empty())
    root.problem("traceEvents", "no work of a GPU in the trace",
                 "record it with ProfilerActivity.CUDA");
  return trace;
}

std::vector<GpuTotals> totals_of(const GpuTrace& trace) {
  std::map<std::int64_t, std::map<GpuWork, std::vector<Interval>>> intervals;
  std::map<std::int64_t, GpuTotals> totals;
  for (const GpuEvent& event : trace.events) {
    intervals[event.device][event.work].push_back({event.begin, event.end});
    WorkTotal& total = totals[event.device].by_stream[event.stream][label_of(event)];
    ++total.count;
    total.nanoseconds += event.end - event.begin;
  }
  std::vector<GpuTotals> result;
  for (auto& [device, of_gpu] : totals) {
    auto& lists = intervals[device];
    std::vector<Interval> compute = lists[GpuWork::compute], all;
    compute.insert(compute.end(), lists[GpuWork::set].begin(), lists[GpuWork::set].end());
    for (const auto& [work, list] : lists) all.insert(all.end(), list.begin(), list.end());
    all = united(std::move(all));
    compute = united(std::move(compute));
    const std::vector<Interval> communication = united(lists[GpuWork::communication]);
    of_gpu.device = device;
    of_gpu.window = all.back().second - all.front().first;
    of_gpu.busy = length_of(all);
    of_gpu.compute = length_of(compute);
    of_gpu.communication = length_of(communication);
    of_gpu.overlap = common_length(compute, communication);
    result.push_back(std::move(of_gpu));
  }
  return result;
}

}  // namespace windtunnel
