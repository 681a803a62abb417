#include "core/json_value.hpp"
#include "scenario/resolved_text.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/scenario_argument.hpp"

namespace windtunnel {

ExitCode show_command(const CommandLine& line) {
  const Scenario scenario = read_placed_scenario_argument(line);
  print_result(line.format == ResultFormat::json ? pretty_text(scenario.resolved) + "\n"
                                                 : resolved_text(scenario.resolved));
  return exit_done;
}

}  // namespace windtunnel
