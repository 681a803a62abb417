#pragma once

#include <filesystem>

#include "scenario/scenario.hpp"
#include "windtunnel/command_line.hpp"

namespace windtunnel {

/// The file that the command's FILE means: a path, or a name from scenarios/.
std::filesystem::path scenario_argument_file(const CommandLine& line, const Library& library);

/// The scenario that the command's FILE means, a path or a name from scenarios/, with the changes of --set.
/// A placement that it wants searched is refused, or left for the caller to search.
Scenario read_scenario_argument(const CommandLine& line,
                                PlacementSearch search = PlacementSearch::refused);
/// The same with the placement searched, where the scenario asks for it.
Scenario read_placed_scenario_argument(const CommandLine& line);

}  // namespace windtunnel
