#pragma once

#include "noise/step_series.hpp"
#include "windtunnel/command_line.hpp"
#include "windtunnel/commands.hpp"

namespace windtunnel {

/// What the command line says of many steps.
StepOptions step_options(const CommandLine& line);
/// exit_negative, and a warning, where the plan of the steps does not fit in memory.
ExitCode exit_of_steps(const CommandLine& line, const Scenario& scenario);

}  // namespace windtunnel
