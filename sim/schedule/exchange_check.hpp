#pragma once

#include <optional>
#include <string>

#include "plan/step.hpp"

namespace windtunnel {

/// Why a legal schedule never finishes under blocking pairs, where each message is posted inside an exchange that both ends
/// enter: the exchanges that wait for each other. Nothing: it finishes.
///
///   stage 0's exchange after F3 waits for stage 1's exchange after B1, which waits for stage 0's exchange after F3
std::optional<std::string> exchange_deadlock(const ScheduleOrders& orders);

}  // namespace windtunnel
