#include "windtunnel/scenario_argument.hpp"

#include <algorithm>
#include <system_error>

#include "scenario/library_files.hpp"
#include "search/placement_search.hpp"

namespace windtunnel {
namespace fs = std::filesystem;

fs::path scenario_argument_file(const CommandLine& line, const Library& library) {
  const std::string& file = line.arguments.front();
  std::error_code ignored;
  if (looks_like_path(file) || fs::exists(file, ignored)) return file;
  const std::vector<std::string> names = library.names(scenario_files.name);
  if (std::find(names.begin(), names.end(), file) == names.end())
    throw UsageError("there is no file \"" + file + "\" and no built-in scenario of that name (" +
                     suggest_name(library, scenario_files, file) + ")");
  return path_for_people(library_file(library, scenario_files, file));
}

Scenario read_scenario_argument(const CommandLine& line, PlacementSearch search) {
  const Library library = Library::find();
  return read_scenario(scenario_argument_file(line, library), library,
                       {line.overrides, line.seed, search});
}

Scenario read_placed_scenario_argument(const CommandLine& line) {
  return place_if_asked(read_scenario_argument(line, PlacementSearch::allowed));
}

}  // namespace windtunnel
