#include "windtunnel/scenario_argument.hpp"

#include <algorithm>

#include "core/file_io.hpp"
#include "scenario/scenario.hpp"
#include "search/placement_search.hpp"
#include "simulate/forked.hpp"
#include "simulate/simulate.hpp"
#include "simulate/tasks.hpp"
#include "windtunnel/console.hpp"

namespace windtunnel {

std::size_t at_once(const CommandLine& line) {
  return line.jobs == 0 ? default_at_once() : line.jobs;
}

StepOptions step_options(const CommandLine& line) {
  return {static_cast<std::size_t>(line.steps), line.seed,
          line.detail == "layer" ? Detail::layer : Detail::pass, at_once(line)};
}

ExitCode exit_of_steps(const CommandLine& line, const Scenario& scenario) {
  if (simulate(scenario).report.memory.fits) return exit_done;
  print_note(line, "warning: the plan does not fit in the memory of its GPUs");
  return exit_negative;
}
namespace fs = std::filesystem;

fs::path scenario_file_for(const std::string& argument, const Library& library) {
  if (is_stdin(argument) || looks_like_path(argument)) return argument;
  if (file_type_of(argument) != fs::file_type::not_found) return argument;
  const std::vector<std::string> names = library.names(scenario_files.name);
  for (const LibraryKind* kind : {&model_files, &platform_files}) {
    const std::vector<std::string> others = library.names(kind->name);
    if (std::ranges::find(others, argument) == others.end()) continue;
    if (std::ranges::find(names, argument) != names.end()) continue;
    const bool is_model = kind == &model_files;
    throw UsageError(argument + " is a " + kind->noun +
                     ", not a scenario. For a scenario with it: windtunnel new --model " +
                     (is_model ? argument : "…") + " --platform " + (is_model ? "…" : argument) +
                     " --gpus … -o mine.json");
  }
  if (std::ranges::find(names, argument) == names.end())
    throw UsageError("there is no file \"" + argument +
                     "\" and no built-in scenario of that name (" +
                     suggest_name(library, scenario_files, argument) + ")");
  return path_for_people(library_file(library, scenario_files, argument));
}

Scenario read_scenario_argument(const CommandLine& line, LeftToCaller left) {
  const Library library = Library::find();
  Scenario scenario = read_scenario(scenario_file_for(line.arguments.front(), library), library,
                                    {line.overrides, line.seed, left});
  // The results of run and job hold these warnings; a ranking that avoids nodes warns of those that it takes.
  if (line.command != "run" && line.command != "job" && line.rank.avoid.empty())
    warn_of_absent_nodes(line, scenario);
  return scenario;
}

void warn_of_absent_nodes(const CommandLine& line, const Scenario& scenario) {
  if (!scenario.neighbour_jobs.empty() || !scenario.neighbour_costs.empty()) return;
  for (const std::string& warning :
       absent_node_warnings(scenario.platform, scenario.plan.num_nodes))
    print_note(line, "warning: " + warning);
}

Scenario read_placed_scenario_argument(const CommandLine& line) {
  return prepare_scenario(read_scenario_argument(line, LeftToCaller::neighbours_and_placement));
}

void note_neighbours(const CommandLine& line, const Scenario& scenario) {
  if (!scenario.neighbour_costs.empty())
    print_note(line, "note: neighbours send throughout what they send beside the plan of the file");
}

void note_noise(const CommandLine& line, const Scenario& scenario) {
  if (scenario.resolved.find("noise") == nullptr) return;
  const bool takes_steps = line.command == "run" || line.command == "explain";
  print_note(
      line,
      takes_steps
          ? "note: one iteration is simulated without noise; --steps N simulates N with it"
          : "note: iterations are simulated without noise; run --steps N simulates N with it");
}

}  // namespace windtunnel
