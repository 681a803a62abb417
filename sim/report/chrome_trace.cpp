#include "report/chrome_trace.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <sstream>
#include <utility>

#include "core/contracts.hpp"
#include "report/memory_counter.hpp"
#include "report/trace_event.hpp"
#include "report/trace_names.hpp"
#include "report/trace_slices.hpp"
#include "timeline/breakdown.hpp"

namespace windtunnel {
namespace {

using detail::DeviceLanes;
using detail::group_of;
using detail::is_of_microbatch;
using detail::kernel_name;
using detail::Lane;
using detail::MemorySample;
using detail::Nanoseconds;
using detail::ObjectText;
using detail::part_name;
using detail::process_name;
using detail::Slice;
using detail::SliceKind;

class TraceWriter {
 public:
  TraceWriter(const Timeline& timeline, const ProgramSet& programs, const Plan& plan,
              const Report& report, std::ostream& out)
      : timeline_(timeline), programs_(programs), plan_(plan), report_(report), out_(out) {
    WT_EXPECT(programs.devices.size() <= plan.devices.size());
  }

  void write() {
    write_head();
    const std::vector<DeviceLanes> lanes = detail::lay_out_slices(timeline_, programs_);
    for (const DeviceLanes& device : lanes)
      while (device.size() > lanes_per_device_) lanes_per_device_ *= more_lanes;
    const auto counters = detail::memory_counters(timeline_, plan_, report_.memory);
    for (std::size_t i = 0; i < lanes.size(); ++i) write_device(i, lanes[i], counters[i]);
    out_ << "\n]}\n";
  }

 private:
  static constexpr std::size_t usual_lanes = 100, more_lanes = 10;

  void write_head() {
    const ObjectText distributed = ObjectText()
                                       .number("rank", std::int64_t{0})
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
  }

  void write_device(std::size_t device, const DeviceLanes& lanes,
                    const std::vector<MemorySample>& memory) {
    pid_ = static_cast<std::int64_t>(device) + 1;
    write_meta("process_name",
               ObjectText().text("name", process_name(plan_, plan_.devices[device])));
    write_meta("process_sort_index", ObjectText().number("sort_index", pid_ - 1));
    for (std::size_t i = 0; i < lanes.size(); ++i) write_lane(i, lanes[i]);
    for (const MemorySample& sample : memory)
      write_event(ObjectText()
                      .text("ph", "C")
                      .text("name", "memory")
                      .number("pid", pid_)
                      .microseconds("ts", sample.at)
                      .object("args", ObjectText().number("bytes", sample.bytes)));
  }

  void write_meta(const char* name, const ObjectText& args, bool of_thread = false) {
    ObjectText event;
    event.text("ph", "M").text("name", name).number("pid", pid_);
    if (of_thread) event.number("tid", tid_);
    write_event(event.object("args", args));
  }

  void write_lane(std::size_t index, const Lane& lane) {
    tid_ = pid_ * static_cast<std::int64_t>(lanes_per_device_) + static_cast<std::int64_t>(index);
    std::string name = name_of(lane.stream);
    if (lane.number > 0) name += " " + std::to_string(lane.number + 1);
    write_meta("thread_name", ObjectText().text("name", name), true);
    const std::int64_t place =
        static_cast<std::int64_t>(lane.stream) * static_cast<std::int64_t>(lanes_per_device_) +
        lane.number;
    write_meta("thread_sort_index", ObjectText().number("sort_index", place), true);
    for (const Slice& slice : lane.slices) write_slice(slice);
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
    write_event(ObjectText()
                    .text("ph", "X")
                    .text("name", name)
                    .text("cat", category)
                    .number("pid", pid_)
                    .number("tid", tid_)
                    .microseconds("ts", slice.begin)
                    .microseconds("dur", slice.end - slice.begin)
                    .object("args", args));
  }

  static ObjectText args_of(const Op& op) {
    ObjectText args;
    if (is_of_microbatch(op.phase))
      args.number("microbatch", std::int64_t{op.microbatch})
          .number("chunk", std::int64_t{op.chunk});
    return args;
  }
  /// Kernels carry the stream they ran on.
  ObjectText kernel_args_of(const Op& op) const { return args_of(op).number("stream", tid_); }

  void write_span(const Slice& slice) {
    const Span& span = timeline_.computes[slice.index];
    const ProgramDevice& device = programs_.devices[span.device.index()];
    const Work& work = programs_.work[device.work_base + span.op.work];
    ObjectText parts;
    for (std::size_t i = 0; i < work.parts.size(); ++i)
      if (work.parts[i] > 0_s)
        parts.microseconds(name_of(line_of(static_cast<Part>(i))),
                           detail::to_nanoseconds(work.parts[i]));
    std::string name = name_of(span.op.phase);
    if (span.stream != Stream::compute)
      return write_complete(slice, name, "kernel",
                            kernel_args_of(span.op).object("parts_us", parts));
    if (is_of_microbatch(span.op.phase)) name += " " + std::to_string(span.op.microbatch);
    write_complete(slice, name, "gpu_user_annotation", args_of(span.op).object("parts_us", parts));
  }

  void write_part(const Slice& slice) {
    const Op& op = timeline_.computes[slice.index].op;
    ObjectText args = kernel_args_of(op);
    if (slice.part == Part::tensor_comm)
      args.text("Process Group Description", "TENSOR_PARALLEL")
          .text("note", "all of the op's tensor-parallel collectives, drawn as one");
    if (slice.part == Part::data_comm)
      args.text("Process Group Description", "DATA_PARALLEL")
          .text("note", "what all of the op's parameter gathers expose, drawn as one");
    write_complete(slice, part_name(op.phase, slice.part, plan_), "kernel", args);
  }

  void write_wait(const Slice& slice) {
    const WaitSpan& wait = timeline_.waits[slice.index];
    const bool bubble = slice.kind == SliceKind::bubble;
    write_complete(slice, std::string(bubble ? "bubble: " : "wait: ") + name_of(wait.waiting.cause),
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
        .microseconds("queued_us", queued)
        .text("Collective name", sent ? "send" : "recv")
        .text("Process Group Description", group_of(message.send.traffic));
    write_complete(slice, kernel_name(message.send.phase, plan_), "kernel", args);

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
    std::int64_t gpus = 0;
    for (const DeviceId member : collective.members)
      gpus += plan_.devices[member.index()].num_gpus();
    write_complete(slice, kernel_name(span.op.phase, plan_), "kernel",
                   kernel_args_of(span.op)
                       .number("bytes", collective.traffic_bytes / Bytes{1})
                       .number("Group size", gpus)
                       .text("Process Group Description", group_of(span.op.traffic)));
  }

  const Timeline& timeline_;
  const ProgramSet& programs_;
  const Plan& plan_;
  const Report& report_;
  std::ostream& out_;
  std::size_t lanes_per_device_ = usual_lanes;
  std::int64_t pid_ = 0, tid_ = 0;
  bool any_written_ = false;
};

}  // namespace

void write_chrome_trace(const Timeline& timeline, const ProgramSet& programs, const Plan& plan,
                        const Report& report, std::ostream& out) {
  TraceWriter(timeline, programs, plan, report, out).write();
}

std::string chrome_trace(const Timeline& timeline, const ProgramSet& programs, const Plan& plan,
                         const Report& report) {
  std::ostringstream out;
  write_chrome_trace(timeline, programs, plan, report, out);
  return std::move(out).str();
}

}  // namespace windtunnel
