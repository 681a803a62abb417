#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "schedule/program.hpp"
#include "timeline/breakdown.hpp"
#include "timeline/critical_path.hpp"
#include "timeline/timeline.hpp"

namespace windtunnel {

/// Use of a part of the critical path.
struct PathShare {
  std::string what;   ///< "compute of stage 5", "stage 3 -> 4 over node 12 -> 13 (activations)"
  std::string topic;  ///< without the place: "compute", "activations"
  Activity::Kind kind = Activity::Kind::compute;
  Line line = Line::compute;
  Seconds time{};
  int steps = 0;                                           ///< stretches of the path it is made of
  Bytes bytes{};                                           ///< of messages: what they carried
  int stage = -1, to_stage = -1, node = -1, to_node = -1;  ///< -1: says nothing here

  /// The mean rate of messages, their latency included; 0 for the rest.
  BytesPerSecond rate() const { return time > Seconds{0} ? bytes / time : BytesPerSecond{}; }
};

/// As a person says it: "compute of stage 5", "waiting for stage 3 -> 4 over node 12 -> 13 at 16.2 GB/s (activations)".
std::string spoken_share(const PathShare& share);

/// The critical path summed up by stage and kind of work, or by the way of messages; the largest first. The times add up to the
/// iteration's.
std::vector<PathShare> path_shares(const Plan& plan, const ProgramSet& programs,
                                   const Timeline& timeline, const CriticalPath& path);

/// The shares as a short list: those of at least two percent (messages: one), at most `most` of them, then the rest of each topic together
/// ("compute of 9 other stages"). The times still add up.
std::vector<PathShare> main_shares(const std::vector<PathShare>& shares, std::size_t most);

/// The times of the shares by line of the breakdown.
Breakdown lines_of_path(const std::vector<PathShare>& shares);

/// A stretch of the critical path in one place: passes of one device one after the other, a message, a collective.
struct PathSegment {
  std::string what;   ///< "stage 7", "stage 3 -> 4 over node 12 -> 13 (activations)"
  std::string where;  ///< the device that computes, as in a trace; else empty
  Activity::Kind kind = Activity::Kind::compute;
  Seconds begin{}, end{};
  int steps = 0;
};

/// The critical path in order of time. Segments follow each other without a gap, from 0 to the iteration time.
std::vector<PathSegment> path_segments(const Plan& plan, const ProgramSet& programs,
                                       const Timeline& timeline, const CriticalPath& path);

}  // namespace windtunnel
