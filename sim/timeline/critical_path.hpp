#pragma once

#include <cstddef>
#include <vector>

#include "schedule/program.hpp"
#include "timeline/timeline.hpp"

namespace windtunnel {

/// Something that took time in the iteration, or a point that others wait for.
struct Activity {
  enum class Kind { compute, message, collective, event };
  Kind kind = Kind::compute;
  std::size_t index =
      0;  ///< in the timeline's list of its kind; of an event: no more than a number
};

/// A stretch of the critical path: the activity that everything after it waited for.
struct CriticalStep {
  Activity activity;
  Seconds begin{}, end{};
};

/// Why the iteration took as long as it did, and what could have taken longer without being noticed.
struct CriticalPath {
  /// From the start of the iteration to its end without a gap: the steps' lengths add up to the iteration time.
  std::vector<CriticalStep> steps;
  /// By how much each activity could end later before the iteration does, everything else being as it was; in the timeline's order.
  std::vector<Seconds> compute_slack, message_slack, collective_slack;
};

/// The critical path through what was played: the longest path through the graph of its activities (Kelley & Walker, "Critical-path planning
/// and scheduling", 1959), where an activity follows
///  - what its stream did before it;
///  - what it waited for: the message received, the exchange's messages, the event recorded on another stream;
///  - of a message, also the one before it in its channel, and the receiver's post where both ends post it;
///  - of a collective, what each of its members did before.
/// Durations are those that were played, so that rates of messages that shared a link are taken as they were. Where two predecessors
/// end together the path follows the first of the timeline's lists. The timeline must be that of `programs`, complete.
CriticalPath find_critical_path(const ProgramSet& programs, const Timeline& timeline);

}  // namespace windtunnel
