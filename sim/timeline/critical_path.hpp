#pragma once

#include <cstddef>
#include <vector>

#include "schedule/program.hpp"
#include "timeline/timeline.hpp"

namespace windtunnel {

/// Reference to one thing that happened in the simulated iteration: a compute op, a message or a collective, which took time, or an event
/// that others waited for. It is an index into the Timeline's list of that kind and holds no times itself, so it stays small: a large job
/// has millions of them. find_critical_path() makes them, and explanations and pages look up their begin and end in the Timeline.
struct Activity {
  enum class Kind { compute, message, collective, event };
  Kind kind = Kind::compute;
  std::size_t index =
      0;  ///< in the timeline's list of its kind; of an event: no more than a number
};

/// One step of the critical path: the activity that everything after it waited for, over the interval in which it did.
struct CriticalStep {
  Activity activity;
  Seconds begin{}, end{};
};

/// The activities that determined the iteration time, and the slack of all others: by how much they could end later without delaying the
/// end of the iteration. On two stages whose second is slower, F and B being its passes:
///
///   steps   stage 0: F0 | message F0 | stage 1: F0 | stage 1: B0 | stage 1: F1 | … | optimizer
///
/// find_critical_path() derives it from a Timeline; report/explanation.hpp puts it into words.
struct CriticalPath {
  /// From the start of the iteration to its end without a gap: the steps' lengths add up to the iteration time.
  std::vector<CriticalStep> steps;
  /// Delay of each activity's end that would not yet delay the iteration, all else equal; in the timeline's order. 0 on the path.
  std::vector<Seconds> compute_slack, message_slack, collective_slack;
};

/// The critical path of a simulated iteration: the longest path through the graph of its activities (Kelley & Walker, "Critical-path planning
/// and scheduling", 1959), where an activity follows
///  - what its stream did before it;
///  - what it waited for: the message received, the exchange's messages, the event recorded on another stream;
///  - of a message, also the one before it in its channel, and the receiver's post where both ends post it;
///  - of a collective, what each of its members did before.
/// Durations are those of the simulation, so messages that shared a link keep the rates they had. If two predecessors
/// end together, the path follows the first of the timeline's lists. The timeline must be that of `programs`, complete.
CriticalPath find_critical_path(const ProgramSet& programs, const Timeline& timeline);

}  // namespace windtunnel
