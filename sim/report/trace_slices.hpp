#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory/memory_account.hpp"
#include "plan/plan.hpp"
#include "schedule/program.hpp"
#include "timeline/timeline.hpp"

/// From a timeline to what a trace viewer can show: slices on threads that nest or are disjoint.
namespace windtunnel::detail {

/// Trace time: whole nanoseconds, so that a slice ends exactly where the next begins.
using Nanoseconds = std::int64_t;
Nanoseconds to_nanoseconds(Seconds time);

enum class SliceKind {
  span,        ///< a compute op; on the compute stream its parts lie inside it
  part,        ///< one part of a compute op
  bubble,      ///< waiting for what is not under way yet
  wait,        ///< waiting for what is under way
  send,        ///< a message, at its sender
  receive,     ///< the same message, at its receiver
  collective,  ///< at each of its members
};

/// Something to draw: `index` is its row in the timeline's list of that kind.
struct Slice {
  Nanoseconds begin = 0, end = 0;
  SliceKind kind = SliceKind::span;
  Part part = Part::compute;
  std::uint32_t index = 0;
};

/// One thread of the trace: a stream, or what overlaps with the lanes of that stream before it.
struct Lane {
  Stream stream = Stream::compute;
  int number = 0;             ///< among the lanes of its stream
  std::vector<Slice> slices;  ///< by begin, an outer slice before what it holds
};

/// The parts of an op that took as long as the span: of a step with noise, its computing takes what exceeds the usual time.
PassTimes parts_of(const Span& span, const Work& work);

/// Threads of a device in the trace: first one lane per stream, in the order of Stream, then the lanes
/// that overlapping messages and collectives need beyond.
using DeviceLanes = std::vector<Lane>;

/// The lanes of every device. Zero-length slices are left out, messages excepted: they are at least
/// `shortest_message` long, so that both ends of an arrow lie inside.
std::vector<DeviceLanes> lay_out_slices(const Timeline& timeline, const ProgramSet& programs);
inline constexpr Nanoseconds shortest_message = 3;

}  // namespace windtunnel::detail

/// Names of things in a trace.
namespace windtunnel::detail {

/// "ranks 0008-0015 · dp0 pp1 tp0-7 · node1"; one GPU alone: "rank 0003 · dp0 pp1 tp3 · node0
/// gpu3".
std::string process_name(const Plan& plan, const PlanDevice& device);
/// Names of communication start with "nccl", as the profiler's do: Holistic Trace Analysis tells it
/// from computing by that. `stage` is the one whose device it runs on.
std::string kernel_name(Phase phase, const Plan& plan, StageId stage);
/// The same for a collective that is an operation of a pass.
std::string kernel_name(Label label);
/// The name of one part of a compute op.
std::string part_name(Phase phase, Part part, const Plan& plan);
/// True if an op belongs to one microbatch.
bool is_of_microbatch(Phase phase);

/// Words of reports and traces for a class of traffic.
struct TrafficNames {
  const char* what;           ///< "gradient reduction"
  Stream stream;              ///< whose thread shows it
  const char* process_group;  ///< that carries it, in the profiler's words: "DATA_PARALLEL"
};
const TrafficNames& traffic_names(Traffic traffic);

/// Bytes in use on a device from a time on.
struct MemorySample {
  Nanoseconds at = 0;
  std::int64_t bytes = 0;
};

/// Memory of each device over the iteration. Its maximum is the account's `allocated` of the stage,
/// to the byte:
///   bytes(t) = allocated - (k_max - k(t)) activation,   k: microbatches in flight, k_max: the most
///   ever
/// A (microbatch, model chunk) pair is in flight from the start of its first forward op to the end
/// of its last backward op (or weight gradient); it costs 1/v of activation_per_microbatch. Where
/// the optimizer step sets the maximum, bytes(t) is lower by the step's temporaries outside the
/// step. Known limit: buffers and gradients count as held all the time, so that between maxima the
/// true value is lower. Devices of stages without an account have no samples.
std::vector<std::vector<MemorySample>> memory_counters(const Timeline& timeline, const Plan& plan,
                                                       const MemoryAccount& memory);

}  // namespace windtunnel::detail
