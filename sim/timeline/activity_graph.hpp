#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "timeline/critical_path.hpp"

namespace windtunnel::detail {

using ActivityId = std::uint32_t;

/// The activities of a timeline as numbers - computes, messages, collectives, events, in that order - and which follows which.
struct ActivityOrder {
  std::vector<Activity> activities;
  std::vector<Seconds> durations;
  std::vector<std::pair<ActivityId, ActivityId>> edges;  ///< before, after
};

ActivityOrder activity_order(const ProgramSet& programs, const Timeline& timeline);

}  // namespace windtunnel::detail
