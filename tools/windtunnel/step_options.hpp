#pragma once

#include "noise/step_series.hpp"
#include "windtunnel/command_line.hpp"

namespace windtunnel {

/// What the command line says of many steps.
StepOptions step_options(const CommandLine& line);

}  // namespace windtunnel
