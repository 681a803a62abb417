#pragma once

#include <string>

#include "core/json_value.hpp"
#include "plan/schedule.hpp"

namespace windtunnel {

/// Reads a schedule file (docs/schedules.md), and checks that it is legal: each fault is a problem at the pass that has it.
///
///   {"version": 1, "name": "mine", "stages": 2, "microbatches": 2, "chunks": 1,
///    "orders": [["F0", "F1", "B0", "B1"], ["F0", "B0", "F1", "B1"]]}
///
/// One list a stage; a pass is F (forward), B (backward) or W (weight gradient, where they stand apart), its microbatch, and
/// ".1" for chunk 1. Left out, `chunks` is 1 and `chunk_path` "loop".
ScheduleOrders read_schedule_orders(JsonValue& value, const std::string& pointer,
                                    Problems& problems);

}  // namespace windtunnel
