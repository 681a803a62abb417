#pragma once

#include <functional>
#include <string>

#include "scenario/scenario.hpp"

namespace windtunnel {

/// Calls `problem(pointer, message, suggestion)` for everything that the compression block asks for and cannot be:
///  - powersgd and topk need sums that leave an error to feed back: gradients, and messages of gradients between stages;
///  - powersgd all-reduces its factors, so that every replica needs whole gradients: no ZeRO 2 or 3;
///  - stages that the pipeline does not have;
///  - a codec for which a device in use has no speed.
void check_compression(
    const Scenario& scenario,
    const std::function<void(const std::string&, const std::string&, const std::string&)>& problem);

}  // namespace windtunnel
