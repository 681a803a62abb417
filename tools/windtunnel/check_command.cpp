#include <string>

#include "core/json_value.hpp"
#include "report/json_object.hpp"
#include "report/report_words.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/scenario_argument.hpp"

namespace windtunnel {
namespace {

std::string json_of(const Scenario& scenario) {
  return pretty_text(object_of({{"schema", "windtunnel/check-v1"},
                                {"name", scenario.name},
                                {"scenario_hash", scenario.hash},
                                {"nodes", scenario.plan.num_nodes},
                                {"gpus", scenario.plan.num_ranks()},
                                {"microbatches", scenario.plan.microbatches}}));
}

std::string text_of(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const auto text = [](int amount) { return std::to_string(amount); };
  return scenario.name + ": correct. " + scenario.model.name + " on " + text(plan.num_ranks()) +
         " GPUs of " + scenario.platform.name + " (" + text(plan.num_nodes) +
         (plan.num_nodes == 1 ? " node" : " nodes") + "), " +
         detail::plan_text(plan.training, plan.parallel) + "; scenario " + scenario.hash;
}

}  // namespace

ExitCode check_command(const CommandLine& line) {
  const Scenario scenario = read_scenario_argument(line, LeftToCaller::neighbours_and_placement);
  print_result(line,
               (line.format == ResultFormat::json ? json_of(scenario) : text_of(scenario)) + "\n");
  return exit_done;
}

}  // namespace windtunnel
