#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "schedule/program.hpp"
#include "timeline/critical_path.hpp"
#include "timeline/timeline.hpp"

namespace windtunnel {

/// How close a stage, a device, or the way between two nodes is to being the bottleneck.
struct Slack {
  std::string what;  ///< "stage 5", "ranks 0008-0015 · dp0 pp1 tp0-7 · node1", "node 12 -> 13"
  Seconds busy{};    ///< of its busiest replica, or channel
  /// The least by which any one thing there could end later before the iteration does; 0: on a longest path.
  Seconds least{};
  Seconds on_path{};  ///< time of the critical path spent there
  /// Half of the time there is spent in things that could each, alone, end at least so much later.
  Seconds median{};
};

/// By stage, in order.
std::vector<Slack> stage_slack(const Plan& plan, const Timeline& timeline,
                               const CriticalPath& path);
/// By simulated device, in the plan's order.
std::vector<Slack> device_slack(const Plan& plan, const Timeline& timeline,
                                const CriticalPath& path);
/// By pair of nodes that messages go between, the least slack first, then what is longest on the path, then the busiest.
std::vector<Slack> link_slack(const Plan& plan, const ProgramSet& programs,
                              const Timeline& timeline, const CriticalPath& path);

}  // namespace windtunnel
