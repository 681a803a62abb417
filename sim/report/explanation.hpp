#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/enum_names.hpp"
#include "core/json_value.hpp"
#include "plan/plan.hpp"
#include "report/ordering.hpp"
#include "report/report.hpp"
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
  int steps = 0;                                           ///< segments of the path it is made of
  Bytes bytes{};                                           ///< of messages: what they carried
  int stage = -1, to_stage = -1, node = -1, to_node = -1;  ///< -1: says nothing here

  /// The mean rate of messages, their latency included; 0 for the rest.
  BytesPerSecond rate() const { return time > Seconds{0} ? bytes / time : BytesPerSecond{}; }
};

/// As a person says it: "compute of stage 5", "waiting for stage 3 -> 4 over node 12 -> 13 at 16.2 GB/s (activations)".
std::string spoken_share(const PathShare& share);

/// Cause of a compute span that is longer than its row of the work table, "gpu 11, 1.25 times as slow", and the delay.
struct SpanDelay {
  std::string what;
  Seconds time{};
};
using DelayOfSpan = std::function<SpanDelay(DeviceId, const Work& usual)>;

/// The critical path summed up by stage and kind of work, or by the way of messages; the largest first. The times add up to the
/// iteration's. With noise, `delay_of` names what delays a span, and the rest that is longer than usual is "noise of stage 3".
std::vector<PathShare> path_shares(const Plan& plan, const ProgramSet& programs,
                                   const Timeline& timeline, const CriticalPath& path,
                                   const DelayOfSpan& delay_of = {});

/// The shares as a short list: those of at least two percent (messages: one), at most `most` of them, then the rest of each topic together
/// ("compute of 9 other stages"). The times still add up.
std::vector<PathShare> main_shares(const std::vector<PathShare>& shares, std::size_t most);

/// The times of the shares by line of the breakdown.
Breakdown lines_of_path(const std::vector<PathShare>& shares);

/// A segment of the critical path in one place: passes of one device one after the other, a message, a collective.
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

/// Slack of a stage, a device, or the route between two nodes: its distance from being the bottleneck.
struct Slack {
  std::string what;  ///< "stage 5", "ranks 0008-0015 · dp0 pp1 tp0-7 · node1", "node 12 -> 13"
  Seconds busy{};    ///< of its busiest replica, or channel
  /// The least by which any one thing there could end later before the iteration does; 0: on a longest path.
  Seconds least{};
  Seconds on_path{};  ///< time of the critical path spent there
  /// Half of the time there is spent in things that could each, alone, end at least so much later.
  Seconds median{};
};

/// Kinds of what-ifs, by what they change.
enum class WhatIfKind {
  gpu,        ///< how fast GPUs compute
  link,       ///< a class of links: inside nodes, between nodes, uplinks, measured pairs
  nic,        ///< network cards
  straggler,  ///< one node slower than its type, or none
  software,   ///< launch floor, habits of the stack
  stage,      ///< a stage's speed, or its layers
  training,   ///< microbatch, recomputation, attention
  schedule,   ///< order of passes, exchange of messages, overlap
  codec,      ///< compression of a traffic class
};
/// True for another way of doing the work, whose sign a model may get wrong; false for the same work at another rate.
bool is_choice(WhatIfKind kind);

/// A change of a scenario whose effect is worth knowing, as `--set` would make it.
struct WhatIf {
  WhatIfKind kind = WhatIfKind::gpu;
  std::string what;                                            ///< "twice the NIC rate"
  std::vector<std::pair<std::string, std::string>> overrides;  ///< pointer, value
  /// Kinds of node that the change makes faster, by place in the platform's list. Empty if it does anything else.
  std::vector<std::size_t> faster_types = {};
};

/// Treatment of a change.
enum class WhatIfFate {
  simulated,
  failed,         ///< it could not be simulated
  cannot_matter,  ///< the critical path spends too little on it to be worth a simulation
  over_budget,    ///< the time for simulations was over
};

/// Result of a change.
struct WhatIfResult {
  WhatIf change;
  Seconds iteration_time{};
  Breakdown breakdown;
  bool fits = true;     ///< in memory
  std::string failure;  ///< why it was not simulated; empty: it was
  /// Shell command that simulates it: "windtunnel run a.json --set /nodes=4".
  std::string command = {};
  WhatIfFate fate = WhatIfFate::simulated;
  /// The most that it can save of the iteration by the critical path, as a share; where there is such a bound.
  std::optional<double> saves_at_most = {};
  std::optional<Ordering> ordering =
      {};  ///< of a choice, against the scenario as it is; where errors are known
  /// Where it does not fit since whole gradients wait for the last microbatch: what would make it fit.
  std::string memory_advice = {};
};

/// Why an iteration takes as long as it does, and what would change it.
struct Explanation {
  Report report;
  CriticalPath path;
  std::vector<PathShare> shares;  ///< adds up to the iteration time
  std::vector<PathSegment> segments;
  std::vector<Slack> stages, devices;  ///< in order; devices are those that are simulated
  /// By pair of nodes that messages go between, the least slack first, then what is longest on the path, then the busiest.
  std::vector<Slack> links;
  std::vector<WhatIfResult>
      what_ifs;  ///< the largest gain, times how sure its sign is, first; those that failed last
  std::string command;  ///< what simulates the scenario, as typed in a shell
};

/// The path and the slacks of what was simulated, without what-ifs.
Explanation explain_path(Report report, const Plan& plan, const ProgramSet& programs,
                         const Timeline& timeline);

/// `words` as one line that a POSIX shell splits into them again.
std::string shell_line(const std::vector<std::string>& words);

/// "-6.1 %", "+0.3 %"; what rounds to nothing is "no change".
std::string change_text(double change);
/// Changes of the breakdown's lines: "pipeline bubble -1.2 s, compute -0.5 s", the largest three.
std::string moved_text(const WhatIfResult& result, const Report& report);

/// "does not fit in memory; fits with no_sync false" where the scenario does, "fits in memory" where it does not; else nothing.
std::string memory_note(const WhatIfResult& result, const Report& report);

/// Output of `windtunnel explain`:
///
///   16.31 s per iteration
///
///   The critical path: what everything else waited for
///      41.2 %     6.720 s  compute of stage 5
///      …
///   What if
///      -6.1 %     15.31 s  twice the NIC rate
std::string explanation_text(const Explanation& explanation, Colour colour);

/// {"schema": "windtunnel/explanation-v1", "iteration_time_s", "breakdown_s",
///  "critical_path": [{"what", "kind", "line", "time_s", "share", "steps", "stage"…, "rate_bytes_per_s"}],
///  "critical_path_s": {line: seconds}, "segments": [{"what", "kind", "where", "begin_s", "end_s", "steps"}],
///  "stages", "devices", "links": [{"what", "busy_s", "on_path_s", "slack_s", "median_slack_s"}]}
JsonValue path_value(const Explanation& explanation);

/// The same, and "command", "what_ifs": [{"what", "kind", "set": {pointer: value}, "command", "iteration_time_s", "change", "fits",
/// "breakdown_s"} or {…, "failure"}], "report": {…}
JsonValue explanation_value(const Explanation& explanation);

}  // namespace windtunnel
