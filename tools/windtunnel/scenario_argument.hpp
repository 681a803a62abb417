#pragma once

#include <filesystem>
#include <string>

#include "noise/step_series.hpp"
#include "scenario/scenario.hpp"
#include "windtunnel/command_line.hpp"
#include "windtunnel/commands.hpp"

namespace windtunnel {

/// The file that a command's FILE means: a path, a name from scenarios/, or "-". Throws UsageError when it is none of them.
std::filesystem::path scenario_file_for(const std::string& argument, const Library& library);

/// The scenario that the command's FILE means, a path or a name from scenarios/, with the changes of --set.
/// A placement that it wants searched is refused, or left for the caller to search.
Scenario read_scenario_argument(const CommandLine& line, LeftToCaller left = LeftToCaller::nothing);
/// The same with the placement searched, where the scenario asks for it.
Scenario read_placed_scenario_argument(const CommandLine& line);

/// Warns of faults and links of nodes that the job does not have.
void warn_of_absent_nodes(const CommandLine& line, const Scenario& scenario);
/// Says, where the scenario has noise, that this command simulates iterations without it.
void note_noise(const CommandLine& line, const Scenario& scenario);

/// Says, where there are second jobs, that other plans than the file's meet what those send alongside the file's.
void note_neighbours(const CommandLine& line, const Scenario& scenario);

/// As many as --jobs says, or one a core.
std::size_t at_once(const CommandLine& line);
/// The command line's options for many steps.
StepOptions step_options(const CommandLine& line);
/// exit_negative, and a warning, where the plan of the steps does not fit in memory.
ExitCode exit_of_steps(const CommandLine& line, const Scenario& scenario);

}  // namespace windtunnel
