#include <string>

#include "core/json_value.hpp"
#include "platform/simgrid_platform.hpp"
#include "questions/collective.hpp"
#include "scenario/overrides.hpp"
#include "scenario/scenario.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/scenario_argument.hpp"

namespace windtunnel {
namespace {

ExitCode show_pointers(const CommandLine& line) {
  const Scenario scenario = read_scenario_argument(line, LeftToCaller::neighbours_and_placement);
  std::string text;
  JsonValue document(JsonValue::Object{});
  for (const auto& [pointer, value] : settable_values(scenario, Library::find())) {
    text += pointer + "=" + value + "\n";
    document.set(pointer, JsonValue(value));
  }
  print_result(line.format == ResultFormat::json ? pretty_text(document) + "\n" : text);
  return exit_done;
}

ExitCode show_simgrid(const CommandLine& line, const Scenario& scenario) {
  refuse_if(line.format == ResultFormat::json, "show --simgrid writes XML: it takes no --json");
  int gpus = 0;
  for (const NodeType& node : scenario.nodes) gpus += node.gpus;
  if (gpus > most_simgrid_hosts)
    throw UsageError("show --simgrid writes the way between each two GPUs: " +
                     std::to_string(most_simgrid_hosts) + " GPUs at the most, and these are " +
                     std::to_string(gpus) + " (write --set /nodes=8)");
  print_result(simgrid_platform(scenario.platform, static_cast<int>(scenario.nodes.size()),
                                base_precision(scenario.plan.training.precision)));
  return exit_done;
}

}  // namespace

ExitCode show_command(const CommandLine& line) {
  if (line.pointers) return show_pointers(line);
  const Scenario scenario = read_placed_scenario_argument(line);
  if (line.simgrid) return show_simgrid(line, scenario);
  if (line.network) {
    print_result(line, line.format == ResultFormat::json
                           ? pretty_text(network_json(scenario)) + "\n"
                           : network_text(scenario));
    return exit_done;
  }
  print_result(line.format == ResultFormat::json ? pretty_text(scenario.resolved) + "\n"
                                                 : resolved_text(scenario.resolved));
  return exit_done;
}

}  // namespace windtunnel
