#pragma once

#include "units/quantity.hpp"

namespace windtunnel {

/// From the launch of a job on so many nodes of 8 GPUs to its first step: measured, in between and beyond on straight lines.
Seconds measured_start_up(int nodes);
/// The same with its source, for people.
extern const char* const start_up_source;

}  // namespace windtunnel
