#pragma once

#include <cstdint>
#include <vector>

#include "engine/player.hpp"
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

/// What a device's threads show: first one lane a stream, in the order of Stream, then the lanes
/// that overlapping messages and collectives need beyond.
using DeviceLanes = std::vector<Lane>;

/// The lanes of every device. Zero-length slices are left out, messages excepted: they are at least
/// `shortest_message` long, so that both ends of an arrow lie inside.
std::vector<DeviceLanes> lay_out_slices(const Timeline& timeline, const ProgramSet& programs);
inline constexpr Nanoseconds shortest_message = 3;

}  // namespace windtunnel::detail
