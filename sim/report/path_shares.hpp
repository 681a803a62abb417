#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "schedule/program.hpp"
#include "timeline/breakdown.hpp"
#include "timeline/critical_path.hpp"
#include "timeline/timeline.hpp"

namespace windtunnel {

/// What a part of the critical path was spent on.
struct PathShare {
  std::string what;  ///< "compute of stage 5", "stage 3 -> 4 over node 12 -> 13 (activations)"
  Line line = Line::compute;
  Seconds time{};
  int steps = 0;  ///< stretches of the path it is made of
};

/// The critical path summed up by stage and kind of work, or by the way of messages; the largest first. The times add up to the
/// iteration's.
std::vector<PathShare> path_shares(const Plan& plan, const ProgramSet& programs,
                                   const Timeline& timeline, const CriticalPath& path);

/// How close a stage, or the way between two nodes, is to being the bottleneck.
struct Slack {
  std::string what;  ///< "stage 5", "node 12 -> 13"
  Seconds busy{};    ///< of its busiest replica, or channel
  Seconds least{};   ///< the least by which anything there could end later; 0: on the critical path
  Seconds on_path{};  ///< time of the critical path spent there
};

/// By stage, in order.
std::vector<Slack> stage_slack(const Plan& plan, const Timeline& timeline,
                               const CriticalPath& path);
/// By pair of nodes that messages go between, the least slack first, then what is longest on the path, then the busiest.
std::vector<Slack> link_slack(const Plan& plan, const ProgramSet& programs,
                              const Timeline& timeline, const CriticalPath& path);

}  // namespace windtunnel
