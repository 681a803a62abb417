#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/id.hpp"
#include "plan/schedule.hpp"

namespace windtunnel {

/// One thing that makes a schedule illegal.
struct ScheduleFault {
  StageId stage;
  std::size_t position = 0;  ///< in the stage's order; its length when something is missing
  std::string message;
};

/// Everything that is wrong with a schedule; nothing: it is legal, and finishes when messages leave by themselves (eager).
/// Each stage runs every pass of its chunks once, with the weight gradients of all passes apart or of none. If so, no pass may
/// wait for itself: a forward needs the forward of the model's part before (plan/chunk_map.hpp), a backward
/// that of the part behind and its own forward, a weight gradient its own backward.
std::vector<ScheduleFault> check_schedule(const ScheduleOrders& orders);

/// When each pass of a legal schedule runs if stages are equal and messages take no time.
struct ScheduleTiming {
  /// Length of a pass in the figures of the papers: backward takes twice as long as forward, or is in two halves.
  static int length_of(Phase phase, bool splits) {
    return phase == Phase::backward && !splits ? 2 : 1;
  }
  std::vector<std::vector<int>> begin;  ///< by stage and position
  int end = 0;                          ///< of the last pass
  int busy = 0;                         ///< of one stage: 3 m v
  bool splits = false;                  ///< weight gradients are passes of their own
  /// Idle time as a fraction of the busy time; (p-1)/m for 1F1B.
  double bubble() const { return static_cast<double>(end - busy) / busy; }
};
/// Longest path through the passes: they begin as soon as their inputs and their device are there.
ScheduleTiming time_schedule(const ScheduleOrders& orders);

/// Why a legal schedule never finishes under blocking pairs, where each message is posted inside an exchange that both ends
/// enter: the exchanges that wait for each other. Nothing: it finishes.
///
///   stage 0's exchange after F3 waits for stage 1's exchange after B1, which waits for stage 0's exchange after F3
std::optional<std::string> exchange_deadlock(const ScheduleOrders& orders);

}  // namespace windtunnel
