#include "scenario/explanation.hpp"
#include "scenario/forked.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/scenario_argument.hpp"

namespace windtunnel {

ExitCode explain_command(const CommandLine& line) {
  const Scenario scenario = read_placed_scenario_argument(line);
  const Explanation explanation = explain(scenario, Library::find(), default_at_once());
  if (line.format == ResultFormat::json)
    print_result(pretty_text(explanation_value(explanation)) + "\n");
  else
    print_result(explanation_text(explanation, colour_of_results()));
  return explanation.report.memory.fits ? exit_done : exit_negative;
}

}  // namespace windtunnel
