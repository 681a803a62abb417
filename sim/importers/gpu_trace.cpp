#include "importers/gpu_trace.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/work_note.hpp"
#include "importers/trace_event_reader.hpp"

namespace windtunnel {
namespace {

using detail::EventArgument;
using detail::EventField;
using detail::TraceEventReader;
using detail::TraceEventText;

/// Numbers for names, so that an event holds four bytes of each.
class NameTable {
 public:
  std::uint32_t number_of(const std::string& name) { return find_or_add(name).first; }
  /// The number, and whether the name is new.
  std::pair<std::uint32_t, bool> find_or_add(const std::string& name) {
    const auto [found, is_new] =
        numbers_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (is_new) names_.push_back(name);
    return {found->second, is_new};
  }
  std::vector<std::string> names() && { return std::move(names_); }
  const std::string& operator[](std::uint32_t number) const { return names_[number]; }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_;
};

using Interval = std::pair<std::int64_t, std::int64_t>;

/// Times on one thread of the CPU.
class ThreadTimes {
 public:
  void add(std::int64_t begin, std::int64_t end) { times_.emplace_back(begin, end); }
  /// Joins what overlaps; before `holds`.
  void unite() {
    std::sort(times_.begin(), times_.end());
    std::vector<Interval> united;
    for (const Interval& time : times_)
      if (!united.empty() && time.first <= united.back().second)
        united.back().second = std::max(united.back().second, time.second);
      else
        united.push_back(time);
    times_ = std::move(united);
  }
  bool holds(std::int64_t at) const {
    const auto after = std::upper_bound(times_.begin(), times_.end(),
                                        Interval{at, std::numeric_limits<std::int64_t>::max()});
    return after != times_.begin() && at < std::prev(after)->second;
  }

 private:
  std::vector<Interval> times_;
};

struct Launch {
  std::uint32_t thread = 0;
  std::int64_t at = 0;
};

std::optional<GpuWork> work_of(const TraceEventText& event) {
  if (event.phase != "X") return std::nullopt;
  if (event.category == "kernel") return GpuWork::compute;
  if (event.category == "gpu_memcpy") return GpuWork::copy;
  if (event.category == "gpu_memset") return GpuWork::set;
  if (event.category == "launch") return GpuWork::launching;
  if (event.category == "bubble") return GpuWork::waiting;
  return std::nullopt;
}

/// The phase that a kernel of our own traces is named after.
ComputePhase phase_named(const std::string& kernel) {
  if (kernel == "forward") return ComputePhase::forward;
  if (kernel == "backward" || kernel == "weight gradient") return ComputePhase::backward;
  if (kernel == "optimizer") return ComputePhase::optimizer;
  if (kernel == "codec" || kernel == "encode" || kernel == "decode") return ComputePhase::codec;
  return ComputePhase::unknown;
}

/// Bytes of one element by PyTorch's name of its type; 0 where it is unknown.
std::int64_t element_size(const std::string& type) {
  static const std::unordered_map<std::string, std::int64_t> sizes{
      {"Double", 8},   {"Long", 8}, {"Float", 4},         {"Int", 4},
      {"BFloat16", 2}, {"Half", 2}, {"Short", 2},         {"Byte", 1},
      {"Char", 1},     {"Bool", 1}, {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1}};
  const auto found = sizes.find(type);
  return found == sizes.end() ? 0 : found->second;
}

/// Counts what is kept of a trace, and what its times add up to.
class TraceBounds {
 public:
  explicit TraceBounds(TraceEventReader& reader) : reader_(reader) {}

  /// One thing more, with a text of its own or none: what a hostile file repeats without end.
  void keep(std::size_t text = 0) {
    constexpr std::size_t things_of_text = 64;  // bytes, about what a thing takes as well
    kept_ += 1 + text / things_of_text;
    if (kept_ > most_kept)
      reader_.stop("/traceEvents", "more than 10 million pieces of work, launches and names",
                   "record fewer steps");
  }
  /// Any sum of times that were counted here is below 2^63 ns.
  void count_time(std::int64_t length) {
    sum_ += length;
    if (sum_ > longest_sum)
      reader_.stop("/traceEvents", "the durations of all GPU work add up to more than 146 years",
                   "they are microseconds");
  }

 private:
  static constexpr std::size_t most_kept = 10'000'000;  ///< some 200 bytes of memory each
  static constexpr std::int64_t longest_sum = std::int64_t{1}
                                              << 62;  ///< ns; no single time is longer
  TraceEventReader& reader_;
  std::size_t kept_ = 0;
  std::int64_t sum_ = 0;
};

/// Takes the events of a trace one by one.
class GpuTraceBuilder {
 public:
  explicit GpuTraceBuilder(TraceEventReader& reader) : reader_(reader), bounds_(reader) {}

  void take(const TraceEventText& event) {
    if (const auto work = work_of(event)) return take_work(event, *work);
    if (event.phase == "M" && event.name == "process_name") return take_process(event);
    if (event.phase != "X") return;
    if (event.category == "cuda_runtime" || event.category == "cuda_driver")
      return take_launch(event);
    if (event.category == "user_annotation" && event.name.starts_with("ProfilerStep#"))
      return take_step(event);
    if (event.name.starts_with("autograd::engine::evaluate_function"))
      take_time(event, backward_);
    else if (event.name.starts_with("Optimizer.step#"))
      take_time(event, optimizer_);
  }

  GpuTrace finish() {
    const auto& head = reader_.head();
    trace_.kind = head.generator == "windtunnel" ? TraceKind::simulated : TraceKind::real;
    trace_.rank = head.rank;
    trace_.world_size = head.world_size;
    trace_.job = head.job;
    for (const auto& [number, name] : head.gpus)
      if (trace_.gpu.empty() || (!trace_.events.empty() && number == trace_.events.front().device))
        trace_.gpu = name;
    find_phases();
    find_groups();
    put_steps_in_order();
    trace_.unknown_kernels.assign(unknown_.begin(), unknown_.end());
    std::sort(trace_.unknown_kernels.begin(), trace_.unknown_kernels.end(),
              [](const auto& a, const auto& b) {
                return std::pair{b.second, a.first} < std::pair{a.second, b.first};
              });
    trace_.names = std::move(names_).names();
    return std::move(trace_);
  }

 private:
  void take_work(const TraceEventText& text, GpuWork work) {
    const auto begin = reader_.time(text, EventField::ts),
               length = reader_.time(text, EventField::dur);
    const auto device = reader_.whole(text, EventField::pid);
    const bool named = reader_.has(text, EventField::name);
    const bool on_stream = reader_.has(text, EventField::tid);
    if (!begin || !length || !device || !named || !on_stream) return;
    bounds_.keep();
    bounds_.count_time(*length);
    GpuEvent event;
    event.work = work;
    event.kind =
        work == GpuWork::compute
            ? kernel_kind(text.name, event.work)
            : names_.number_of(work == GpuWork::copy ? direction_in(text.name) : std::string());
    event.group = event.work == GpuWork::communication ? group_of(text) : names_.number_of({});
    event.stream = number_of_name(text.tid);
    event.device = *device;
    event.begin = *begin;
    event.end = *begin + *length;
    if (event.work == GpuWork::compute) event.phase = phase_named(text.name);
    correlations_.push_back(text.correlation);
    trace_.events.push_back(event);
    if (event.work == GpuWork::communication && names_[event.kind].starts_with("nccl"))
      take_call(text, event);
    if (work == GpuWork::compute) trace_.kernel_time += *length;
    if (event.work == GpuWork::compute && names_[event.kind] == unknown_kernels)
      unknown_[text.name] += *length;
  }

  void take_call(const TraceEventText& text, const GpuEvent& event) {
    bounds_.keep();
    const std::string& name = text.argument(EventArgument::collective);
    CollectiveCall call;
    call.kind = collective_kind_of(name.empty() ? names_[event.kind] : name);
    call.group = number_of_name(text.group_name);
    call.description = event.group;
    call.ranks = number_of_name(text.argument(EventArgument::group_ranks));
    call.group_size = text.number_in(EventArgument::group_size).value_or(0);
    call.bytes = bytes_of(text);
    call.sequence = text.number_in(EventArgument::sequence_number).value_or(-1);
    call.source = text.number_in(EventArgument::source_rank).value_or(-1);
    call.destination = text.number_in(EventArgument::destination_rank).value_or(-1);
    call.begin = event.begin;
    call.end = event.end;
    trace_.calls.push_back(call);
  }

  static std::int64_t bytes_of(const TraceEventText& text) {
    constexpr std::int64_t most_elements = std::int64_t{1} << 50;
    const std::int64_t elements = std::max(text.number_in(EventArgument::in_elements).value_or(0),
                                           text.number_in(EventArgument::out_elements).value_or(0));
    return elements > 0 && elements < most_elements
               ? elements * element_size(text.argument(EventArgument::element_type))
               : 0;
  }

  /// The name of a kernel's kind; `work` becomes communication where it is that.
  std::uint32_t kernel_kind(const std::string& name, GpuWork& work) {
    const auto [found, is_new] = kinds_.try_emplace(name);
    auto& [kind, of_kernel] = found->second;
    if (is_new) {
      bounds_.keep(name.size());
      const std::string communication = communication_in(name);
      of_kernel = communication.empty() ? GpuWork::compute : GpuWork::communication;
      kind = names_.number_of(!communication.empty()                       ? communication
                              : phase_named(name) != ComputePhase::unknown ? name
                                                                           : compute_kind_of(name));
    }
    work = of_kernel;
    return kind;
  }

  /// What the kernel says of its group: the description, or the name by which the head describes it.
  std::uint32_t group_of(const TraceEventText& event) {
    const std::uint32_t number = number_of_name(
        event.group_description.empty() ? event.group_name : event.group_description);
    if (event.group_description.empty() && !event.group_name.empty())
      to_describe_.emplace(number, event.group_name);
    return number;
  }

  std::uint32_t number_of_name(const std::string& name) {
    const auto [number, is_new] = names_.find_or_add(name);
    if (is_new) bounds_.keep(name.size());
    return number;
  }

  void take_process(const TraceEventText& event) {
    std::int64_t pid = 0;
    const char* const end = event.pid.data() + event.pid.size();
    if (std::from_chars(event.pid.data(), end, pid).ptr == end && !event.args_name.empty()) {
      bounds_.keep(event.args_name.size());
      trace_.processes[pid] = event.args_name;
    }
  }

  void take_launch(const TraceEventText& event) {
    const auto at = reader_.optional_time(event, EventField::ts);
    if (event.correlation == 0 || !at) return;
    bounds_.keep();
    launches_[event.correlation] = {thread_of(event), *at};
  }

  void take_step(const TraceEventText& event) {
    const auto begin = reader_.time(event, EventField::ts),
               length = reader_.time(event, EventField::dur);
    if (!begin || !length || *length <= 0) return;
    bounds_.keep(event.name.size());
    trace_.steps.push_back({event.name, *begin, *begin + *length});
  }

  void take_time(const TraceEventText& event,
                 std::unordered_map<std::uint32_t, ThreadTimes>& times) {
    const auto begin = reader_.optional_time(event, EventField::ts);
    const auto length = reader_.optional_time(event, EventField::dur);
    if (!begin || !length) return;
    bounds_.keep();
    times[thread_of(event)].add(*begin, *begin + *length);
  }

  std::uint32_t thread_of(const TraceEventText& event) {
    const auto [number, is_new] = threads_.find_or_add(event.pid + "/" + event.tid);
    if (is_new) bounds_.keep(event.pid.size() + event.tid.size());
    return number;
  }

  void find_phases() {
    for (auto& [thread, times] : backward_) times.unite();
    for (auto& [thread, times] : optimizer_) times.unite();
    if (launches_.empty()) return;
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      GpuEvent& event = trace_.events[i];
      if (event.work != GpuWork::compute && event.work != GpuWork::set) continue;
      const auto launch = launches_.find(correlations_[i]);
      if (launch == launches_.end())
        trace_.unlaunched += event.phase == ComputePhase::unknown;
      else
        event.phase = phase_of(launch->second);
    }
  }

  ComputePhase phase_of(const Launch& launch) const {
    const auto within = [&](const std::unordered_map<std::uint32_t, ThreadTimes>& times) {
      const auto thread = times.find(launch.thread);
      return thread != times.end() && thread->second.holds(launch.at);
    };
    if (within(optimizer_)) return ComputePhase::optimizer;
    return within(backward_) ? ComputePhase::backward : ComputePhase::forward;
  }

  void find_groups() {
    const auto& described = reader_.head().group_descriptions;
    std::unordered_map<std::uint32_t, std::uint32_t> renamed;
    for (const auto& [number, name] : to_describe_)
      if (const auto found = described.find(name); found != described.end())
        renamed[number] = names_.number_of(found->second);
    for (CollectiveCall& call : trace_.calls)
      if (const auto found = renamed.find(call.description); found != renamed.end())
        call.description = found->second;
    for (GpuEvent& event : trace_.events) {
      if (event.work != GpuWork::communication) continue;
      if (const auto found = renamed.find(event.group); found != renamed.end())
        event.group = found->second;
      event.comm = comm_class_of(names_[event.group]);
    }
  }

  /// Every process of our traces has the marks; steps that overlap are cut.
  void put_steps_in_order() {
    std::vector<TraceStep>& steps = trace_.steps;
    std::stable_sort(steps.begin(), steps.end(), [](const TraceStep& a, const TraceStep& b) {
      return std::pair{a.begin, a.end} < std::pair{b.begin, b.end};
    });
    std::vector<TraceStep> disjoint;
    for (TraceStep& step : steps) {
      if (!disjoint.empty()) step.begin = std::max(step.begin, disjoint.back().end);
      if (step.begin < step.end) disjoint.push_back(std::move(step));
    }
    steps = std::move(disjoint);
  }

  TraceEventReader& reader_;
  TraceBounds bounds_;
  GpuTrace trace_;
  NameTable names_, threads_;
  std::unordered_map<std::string, std::pair<std::uint32_t, GpuWork>>
      kinds_;                                              ///< of kernels by name
  std::unordered_map<std::string, std::int64_t> unknown_;  ///< ns, of kernels of unknown names
  std::unordered_map<std::uint32_t, std::string> to_describe_;
  std::vector<std::int64_t> correlations_;  ///< of trace_.events; 0: none
  std::unordered_map<std::int64_t, Launch> launches_;
  std::unordered_map<std::uint32_t, ThreadTimes> backward_, optimizer_;
};

}  // namespace

const char* name_of(GpuWork work) {
  switch (work) {
    case GpuWork::compute:
      return "compute";
    case GpuWork::communication:
      return "communication";
    case GpuWork::copy:
      return "memcpy";
    case GpuWork::set:
      return "memset";
    case GpuWork::launching:
      return "launch gaps";
    case GpuWork::waiting:
      return "bubble";
  }
  return "";
}

const char* name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all-reduce";
    case CollectiveKind::all_gather:
      return "all-gather";
    case CollectiveKind::reduce_scatter:
      return "reduce-scatter";
    case CollectiveKind::all_to_all:
      return "all-to-all";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::message:
      return "message";
    case CollectiveKind::other:
      return "other";
  }
  return "";
}

CollectiveKind collective_kind_of(std::string_view name) {
  std::string letters;
  for (const char c : name)
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto has = [&](std::string_view part) { return letters.find(part) != std::string::npos; };
  if (has("allreduce")) return CollectiveKind::all_reduce;
  if (has("allgather")) return CollectiveKind::all_gather;
  if (has("reducescatter")) return CollectiveKind::reduce_scatter;
  if (has("alltoall")) return CollectiveKind::all_to_all;
  if (has("broadcast")) return CollectiveKind::broadcast;
  if (has("send") || has("recv")) return CollectiveKind::message;
  return CollectiveKind::other;
}

const char* name_of(ComputePhase phase) {
  switch (phase) {
    case ComputePhase::forward:
      return "forward";
    case ComputePhase::backward:
      return "backward";
    case ComputePhase::optimizer:
      return "optimizer";
    case ComputePhase::codec:
      return "codec";
    case ComputePhase::unknown:
      return "unknown";
  }
  return "";
}

double GpuTrace::unknown_share() const {
  std::int64_t unknown = 0;
  for (const auto& [name, time] : unknown_kernels) unknown += time;
  return kernel_time > 0 ? static_cast<double>(unknown) / static_cast<double>(kernel_time) : 0;
}

GpuTrace read_gpu_trace(TextInput& input) {
  const Doing reading("reading a trace", "bytes");
  TraceEventReader reader(input);
  GpuTraceBuilder builder(reader);
  reader.read([&](const TraceEventText& event) { builder.take(event); });
  GpuTrace trace = builder.finish();
  trace.file = input.name();
  if (trace.events.empty() && reader.problems().empty())
    reader.problem("/traceEvents", "no work of a GPU in the trace",
                   "record it with ProfilerActivity.CUDA");
  reader.problems().throw_if_any();
  return trace;
}

bool looks_like_trace(std::string_view beginning) {
  for (const std::string_view key :
       {"\"traceEvents\"", "\"schemaVersion\"", "\"deviceProperties\"", "\"distributedInfo\""})
    if (beginning.find(key) != std::string_view::npos) return true;
  return false;
}

}  // namespace windtunnel
