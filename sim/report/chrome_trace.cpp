#include "report/chrome_trace.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <sstream>
#include <utility>

#include "core/contracts.hpp"
#include "core/work_note.hpp"
#include "report/trace_slices.hpp"
#include "timeline/breakdown.hpp"

namespace windtunnel {
namespace {

using detail::DeviceLanes;
using detail::is_of_microbatch;
using detail::kernel_name;
using detail::Lane;
using detail::MemorySample;
using detail::Nanoseconds;
using detail::part_name;
using detail::process_name;
using detail::Slice;
using detail::SliceKind;
using detail::traffic_names;

/// Writes one JSON object as text, member by member.
class ObjectText {
 public:
  ObjectText& text(std::string_view key, std::string_view value) {
    return raw(key, canonical_text(JsonValue(std::string(value))));
  }
  ObjectText& number(std::string_view key, std::int64_t value) {
    return raw(key, std::to_string(value));
  }
  ObjectText& number(std::string_view key, double value) {
    return raw(key, canonical_text(JsonValue(value)));
  }
  /// Nanoseconds as microseconds with three decimals: 1234567 -> 1234.567
  ObjectText& microseconds(std::string_view key, Nanoseconds value) {
    constexpr Nanoseconds per_microsecond = 1000;
    const std::string rest = std::to_string(value % per_microsecond + per_microsecond);
    return raw(key, std::to_string(value / per_microsecond) + "." + rest.substr(1));
  }
  ObjectText& object(std::string_view key, const ObjectText& value) {
    return raw(key, value.str());
  }
  /// `json` is written as it is.
  ObjectText& raw(std::string_view key, std::string_view json) {
    text_ += text_.empty() ? "{\"" : ",\"";
    (text_ += key) += "\":";
    text_ += json;
    return *this;
  }
  std::string str() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;
};

ObjectText args_of(const Op& op) {
  ObjectText args;
  if (is_of_microbatch(op.phase))
    args.number("microbatch", std::int64_t{op.microbatch}).number("chunk", std::int64_t{op.chunk});
  if (label_of(op) != Label::whole_pass) args.text("operation", row_of(label_of(op)).text);
  if (layer_of(op) > 0) args.number("layer", std::int64_t{layer_of(op)});
  return args;
}

/// Adds the profiler's description of a communicating kernel. A group is named by its lowest rank.
ObjectText& add_group(ObjectText& args, const char* collective, const char* group,
                      std::size_t lowest_rank) {
  return args.text("Collective name", collective)
      .text("Process Group Name", std::string(group) + "." + std::to_string(lowest_rank))
      .text("Process Group Description", group);
}

/// Adds the sizes of each rank's input and output. Codecs and precisions differ, so elements are bytes.
ObjectText& add_sizes(ObjectText& args, Bytes in, Bytes out) {
  const auto count = [](Bytes bytes) { return std::int64_t{std::llround(bytes / Bytes{1})}; };
  return args.number("In msg nelems", count(in))
      .number("Out msg nelems", count(out))
      .text("dtype", "Byte");
}

bool is_all_reduce(std::string_view kernel) {
  return kernel.find("AllReduce") != std::string_view::npos;
}

bool is_gather(std::string_view kernel) {
  return kernel.find("AllGather") != std::string_view::npos;
}

const char* collective_word(std::string_view kernel) {
  if (is_all_reduce(kernel)) return "allreduce";
  if (is_gather(kernel) && kernel.find("ReduceScatter") != std::string_view::npos)
    return "allgather, reduce_scatter";
  return is_gather(kernel) ? "allgather" : "reduce_scatter";
}

/// From what is sent: in a ring of n each sends 2 (n-1)/n of the whole for an all-reduce, half of
/// that for the others.
void add_collective_sizes(ObjectText& args, std::string_view kernel, Bytes sent, std::int64_t group,
                          std::int64_t groups) {
  if (group < 2) return;
  const double rounds = is_all_reduce(kernel) ? 2 : 1;
  const Bytes whole =
      sent * (1 / (rounds * static_cast<double>((group - 1) * std::max<std::int64_t>(1, groups))));
  const Bytes shard = whole * (1 / static_cast<double>(group));
  add_sizes(args, is_gather(kernel) ? shard : whole,
            is_all_reduce(kernel) || is_gather(kernel) ? whole : shard);
}

class TraceWriter {
 public:
  TraceWriter(const Timeline& timeline, const ProgramSet& programs, const Plan& plan,
              const Report& report, std::ostream& out)
      : timeline_(timeline),
        programs_(programs),
        plan_(plan),
        report_(report),
        out_(out),
        lanes_(detail::lay_out_slices(timeline, programs)),
        counters_(detail::memory_counters(timeline, plan, report.memory)) {
    WT_EXPECT(programs.devices.size() <= plan.devices.size());
    // The last number is that of the row of the step's mark.
    for (const DeviceLanes& device : lanes_)
      while (device.size() >= lanes_per_device_) lanes_per_device_ *= more_lanes;
  }

  /// These devices in one file, in their order; at least one. An arrow whose other end is in none of
  /// them is left out.
  void write(const std::vector<DeviceId>& devices) {
    WT_EXPECT(!devices.empty());
    kept_.assign(lanes_.size(), false);
    for (const DeviceId device : devices) kept_[device.index()] = true;
    write_head(plan_.devices[devices.front().index()].ranks.front());
    for (const DeviceId device : devices) write_device(device.index());
    write_end();
  }

 private:
  static constexpr std::size_t usual_lanes = 100, more_lanes = 10;

  void write_end() {
    out_ << "\n]}\n";
    any_written_ = false;
  }

  void write_head(RankId rank) {
    const ObjectText distributed = ObjectText()
                                       .number("rank", static_cast<std::int64_t>(rank.index()))
                                       .number("world_size", std::int64_t{plan_.num_ranks()})
                                       .text("backend", "nccl");
    const ObjectText provenance = ObjectText()
                                      .text("generator", "windtunnel")
                                      .text("version", report_.version)
                                      .text("name", report_.name)
                                      .text("scenario_hash", report_.scenario_hash)
                                      .text("seed", std::to_string(report_.seed))
                                      .text("model", report_.model_name)
                                      .text("platform", report_.platform_name)
                                      .text("software", report_.software_name);
    const std::string head = ObjectText()
                                 .number("schemaVersion", std::int64_t{1})
                                 .text("displayTimeUnit", "ns")
                                 .object("distributedInfo", distributed)
                                 .object("otherData", provenance)
                                 .str();
    out_ << head.substr(0, head.size() - 1) << ",\"traceEvents\":[";
  }

  void write_event(const ObjectText& event) {
    out_ << (std::exchange(any_written_, true) ? ",\n" : "\n") << event.str();
    count_done(++num_written_);
  }

  void write_device(std::size_t device) {
    pid_ = static_cast<std::int64_t>(device) + 1;
    gpu_ = plan_.devices[device].gpus.front();
    write_meta("process_name",
               ObjectText().text("name", process_name(plan_, plan_.devices[device])));
    write_meta("process_sort_index", ObjectText().number("sort_index", pid_ - 1));
    const auto lanes = static_cast<std::int64_t>(lanes_per_device_);
    if (const Nanoseconds end = detail::to_nanoseconds(timeline_.end); end > 0) {
      // The iteration, marked as PyTorch's profiler marks a step.
      tid_ = (pid_ + 1) * lanes - 1;
      write_meta("thread_name", ObjectText().text("name", "step"), true);
      write_meta("thread_sort_index", ObjectText().number("sort_index", std::int64_t{-1}), true);
      write_event(complete("ProfilerStep#0", "user_annotation", 0, end));
    }
    tid_ = pid_ * lanes;
    for (const Lane& lane : lanes_[device]) {
      std::string name = name_of(lane.stream);
      if (lane.number > 0) name += " " + std::to_string(lane.number + 1);
      write_meta("thread_name", ObjectText().text("name", name), true);
      const std::int64_t place = static_cast<std::int64_t>(lane.stream) * lanes + lane.number;
      write_meta("thread_sort_index", ObjectText().number("sort_index", place), true);
      for (const Slice& slice : lane.slices) write_slice(slice);
      ++tid_;
    }
    for (const MemorySample& sample : counters_[device])
      write_event(ObjectText()
                      .text("ph", "C")
                      .text("name", "memory")
                      .number("pid", pid_)
                      .microseconds("ts", sample.at)
                      .object("args", ObjectText().number("bytes", sample.bytes)));
  }

  ObjectText complete(std::string_view name, const char* category, Nanoseconds begin,
                      Nanoseconds duration) const {
    return ObjectText()
        .text("ph", "X")
        .text("name", name)
        .text("cat", category)
        .number("pid", pid_)
        .number("tid", tid_)
        .microseconds("ts", begin)
        .microseconds("dur", duration);
  }

  void write_meta(const char* name, const ObjectText& args, bool of_thread = false) {
    ObjectText event;
    event.text("ph", "M").text("name", name).number("pid", pid_);
    if (of_thread) event.number("tid", tid_);
    write_event(event.object("args", args));
  }

  void write_slice(const Slice& slice) {
    switch (slice.kind) {
      case SliceKind::span:
        return write_span(slice);
      case SliceKind::part:
        return write_part(slice);
      case SliceKind::bubble:
      case SliceKind::wait:
        return write_wait(slice);
      case SliceKind::send:
      case SliceKind::receive:
        return write_message(slice);
      case SliceKind::collective:
        return write_collective(slice);
    }
  }

  void write_complete(const Slice& slice, std::string_view name, const char* category,
                      const ObjectText& args) {
    write_event(
        complete(name, category, slice.begin, slice.end - slice.begin).object("args", args));
  }

  /// Kernels carry the GPU and the stream they ran on.
  ObjectText kernel_args_of(const Op& op) const {
    return args_of(op).number("device", std::int64_t{gpu_}).number("stream", tid_);
  }

  void write_span(const Slice& slice) {
    const Span& span = timeline_.computes[slice.index];
    const ProgramDevice& device = programs_.devices[span.device.index()];
    const PassTimes times = detail::parts_of(span, programs_.work_of(device, span.op));
    ObjectText parts;
    for (std::size_t i = 0; i < times.size(); ++i)
      if (times[i] > 0_s)
        parts.microseconds(name_of(line_of(static_cast<Part>(i))),
                           detail::to_nanoseconds(times[i]));
    std::string name = name_of(span.op.phase);
    const Label label = label_of(span.op);
    if (span.stream != Stream::compute)
      return write_complete(slice, label == Label::whole_pass ? name : kernel_name(label), "kernel",
                            kernel_args_of(span.op).object("parts_us", parts));
    if (is_of_microbatch(span.op.phase)) name += " " + std::to_string(span.op.microbatch);
    if (label != Label::whole_pass) name += std::string(": ") + row_of(label).text;
    write_complete(slice, name, "gpu_user_annotation", args_of(span.op).object("parts_us", parts));
  }

  void write_part(const Slice& slice) {
    const Op& op = timeline_.computes[slice.index].op;
    const Label label = label_of(op);
    const bool whole = label == Label::whole_pass || row_of(label).part != slice.part;
    const std::string name = whole ? part_name(op.phase, slice.part, plan_) : kernel_name(label);
    // No kernel runs while the GPU waits for launches.
    if (slice.part == Part::other) return write_complete(slice, name, "launch", args_of(op));
    ObjectText args = kernel_args_of(op);
    const auto add = [&](Traffic traffic, const char* collective, int size) {
      add_group(args, whole || traffic == Traffic::zero_gather ? collective : collective_word(name),
                traffic_names(traffic).process_group, device().ranks.front().index())
          .number("Group size", std::int64_t{size});
    };
    if (slice.part == Part::tensor_comm)
      add(Traffic::tensor_activations, collective_word(name), plan_.parallel.tensor);
    if (slice.part == Part::tensor_comm && whole)
      args.text("note", "all of the op's tensor-parallel collectives, drawn as one");
    if (slice.part == Part::expert_comm)
      add(Traffic::expert_dispatch, "alltoall", plan_.parallel.expert);
    if (slice.part == Part::context_comm)
      add(Traffic::context, "send_recv", plan_.parallel.context);
    if (slice.part == Part::data_comm) {
      add(Traffic::zero_gather, "allgather", plan_.parallel.replicas());
      args.text("note", "what all of the op's parameter gathers expose, drawn as one");
    }
    write_complete(slice, name, "kernel", args);
  }

  void write_wait(const Slice& slice) {
    const WaitSpan& wait = timeline_.waits[slice.index];
    const bool bubble = slice.kind == SliceKind::bubble;
    const bool peers = bubble && wait_for_others(wait.waiting).line == Line::peer_wait;
    write_complete(slice,
                   std::string(peers    ? "peers: "
                               : bubble ? "bubble: "
                                        : "wait: ") +
                       name_of(wait.waiting.cause),
                   bubble ? "bubble" : "wait", args_of(wait.op));
  }

  /// A message and its end of the arrow, strictly inside.
  void write_message(const Slice& slice) {
    const MessageSpan& message = timeline_.messages[slice.index];
    const Channel& channel = programs_.channels[message.channel.index()];
    const bool sent = slice.kind == SliceKind::send;
    const Nanoseconds queued =
        std::max(Nanoseconds{0}, slice.begin - detail::to_nanoseconds(message.posted));
    ObjectText args = kernel_args_of(message.send);
    args.text("direction", sent ? "send" : "receive")
        .number(sent ? "to_pid" : "from_pid",
                std::int64_t{(sent ? channel.to : channel.from).index()} + 1)
        .number("bytes", message.bytes / Bytes{1})
        .microseconds("queued_us", queued);
    add_group(args, sent ? "send" : "recv", traffic_names(message.send.traffic).process_group,
              lowest_rank({channel.from, channel.to}))
        .number("Group size", std::int64_t{2});
    const Bytes of_rank = message.bytes * (1.0 / plan_.devices[channel.from.index()].num_gpus());
    add_sizes(args, of_rank, of_rank);
    write_complete(slice, kernel_name(message.send.phase, plan_, stage()), "kernel", args);
    if (!kept_[channel.from.index()] || !kept_[channel.to.index()]) return;

    ObjectText arrow;
    arrow.text("ph", sent ? "s" : "f");
    if (!sent) arrow.text("bp", "e");
    write_event(arrow.text("name", name_of(message.send.phase))
                    .text("cat", "message")
                    .number("id", std::int64_t{slice.index} + 1)
                    .number("pid", pid_)
                    .number("tid", tid_)
                    .microseconds("ts", sent ? slice.begin + 1 : slice.end - 1));
  }

  void write_collective(const Slice& slice) {
    const CollectiveSpan& span = timeline_.collectives[slice.index];
    const Collective& collective = programs_.collectives[span.collective.index()];
    const Label label = label_of(span.op);
    const std::string name = label == Label::whole_pass ? kernel_name(span.op.phase, plan_, stage())
                                                        : kernel_name(label);
    std::int64_t gpus = 0;
    for (const DeviceId member : collective.members)
      gpus += plan_.devices[member.index()].num_gpus();
    // A device of several GPUs is in as many groups at once, the tensor group excepted.
    const bool one_group = span.op.traffic == Traffic::tensor_activations;
    const auto members = static_cast<std::int64_t>(collective.members.size());
    const std::int64_t group = one_group ? gpus : members;
    ObjectText args = kernel_args_of(span.op);
    args.number("bytes", collective.traffic_bytes / Bytes{1});
    add_group(args, collective_word(name), traffic_names(span.op.traffic).process_group,
              lowest_rank(collective.members))
        .number("Group size", group);
    add_collective_sizes(args, name, collective.traffic_bytes, group, gpus / group);
    write_complete(slice, name, "kernel", args);
  }

  const PlanDevice& device() const { return plan_.devices[static_cast<std::size_t>(pid_ - 1)]; }
  StageId stage() const { return device().stage; }

  std::size_t lowest_rank(const std::vector<DeviceId>& devices) const {
    std::size_t lowest = plan_.devices[devices.front().index()].ranks.front().index();
    for (const DeviceId device : devices)
      lowest = std::min<std::size_t>(lowest, plan_.devices[device.index()].ranks.front().index());
    return lowest;
  }

  const Timeline& timeline_;
  const ProgramSet& programs_;
  const Plan& plan_;
  const Report& report_;
  std::ostream& out_;
  std::vector<DeviceLanes> lanes_;
  std::vector<std::vector<MemorySample>> counters_;
  std::size_t lanes_per_device_ = usual_lanes;
  std::int64_t pid_ = 0, tid_ = 0;
  int gpu_ = 0;
  bool any_written_ = false;  ///< in this file
  std::uint64_t num_written_ = 0;
  std::vector<bool> kept_;
};

/// About as many as will be written: an op and its parts, both halves of a message with their ends
/// of an arrow, a collective at each member.
std::vector<std::size_t> events_by_device(const Timeline& timeline, const ProgramSet& programs) {
  std::vector<std::size_t> events(programs.devices.size(), 0);
  for (const Span& span : timeline.computes) {
    const Work& work = programs.work_of(programs.devices[span.device.index()], span.op);
    events[span.device.index()] += 1 + static_cast<std::size_t>(std::ranges::count_if(
                                           work.parts, [](Seconds part) { return part > 0_s; }));
  }
  for (const WaitSpan& wait : timeline.waits) events[wait.device.index()] += 1;
  for (const MessageSpan& message : timeline.messages) {
    const Channel& channel = programs.channels[message.channel.index()];
    for (const DeviceId end : {channel.from, channel.to}) events[end.index()] += 2;
  }
  for (const CollectiveSpan& span : timeline.collectives)
    for (const DeviceId member : programs.collectives[span.collective.index()].members)
      events[member.index()] += 1;
  return events;
}

}  // namespace

std::vector<DeviceId> all_devices(const ProgramSet& programs) {
  std::vector<DeviceId> devices;
  for (std::size_t i = 0; i < programs.devices.size(); ++i) devices.push_back(DeviceId{i});
  return devices;
}

std::vector<DeviceId> devices_that_viewers_load(const Timeline& timeline,
                                                const ProgramSet& programs, const Plan& plan) {
  constexpr std::size_t most_events = 1'000'000;  // about 200 MB of JSON; docs/trace.md
  const std::vector<std::size_t> events = events_by_device(timeline, programs);
  const std::size_t of_replica = static_cast<std::size_t>(plan.parallel.pipeline) *
                                 static_cast<std::size_t>(plan.nodes_per_tensor_group);
  std::vector<DeviceId> devices;
  std::size_t sum = 0;
  for (std::size_t begin = 0; begin < events.size(); begin += of_replica) {
    const std::size_t end = std::min(begin + of_replica, events.size());
    for (std::size_t i = begin; i < end; ++i) sum += events[i];
    if (begin > 0 && sum > most_events) break;
    for (std::size_t i = begin; i < end; ++i) devices.push_back(DeviceId{i});
  }
  return devices;
}

void write_chrome_trace(const Timeline& timeline, const ProgramSet& programs, const Plan& plan,
                        const Report& report, const std::vector<DeviceId>& devices,
                        std::ostream& out) {
  const WorkNoteScope writing("writing the trace", "events");
  TraceWriter(timeline, programs, plan, report, out).write(devices);
}

void write_device_traces(const Timeline& timeline, const ProgramSet& programs, const Plan& plan,
                         const Report& report, const std::vector<DeviceId>& devices,
                         const std::function<void(DeviceId, std::string)>& take) {
  std::ostringstream out;
  TraceWriter writer(timeline, programs, plan, report, out);
  for (const DeviceId device : devices) {
    writer.write({device});
    take(device, std::exchange(out, std::ostringstream()).str());
  }
}

}  // namespace windtunnel
