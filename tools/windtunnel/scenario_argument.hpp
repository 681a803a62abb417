#pragma once

#include "scenario/scenario.hpp"
#include "windtunnel/command_line.hpp"

namespace windtunnel {

/// The scenario that the command's FILE means, a path or a name from scenarios/, with the changes of --set.
Scenario read_scenario_argument(const CommandLine& line);

}  // namespace windtunnel
