#include <string>

#include "core/json_value.hpp"
#include "report/report_words.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/scenario_argument.hpp"

namespace windtunnel {
namespace {

JsonValue number(int amount) { return JsonValue(std::int64_t{amount}); }

std::string json_of(const Scenario& scenario) {
  JsonValue result(JsonValue::Object{});
  result.set("schema", JsonValue(std::string("windtunnel/check-v1")));
  result.set("name", JsonValue(scenario.name));
  result.set("scenario_hash", JsonValue(scenario.hash));
  result.set("nodes", number(scenario.plan.num_nodes));
  result.set("gpus", number(scenario.plan.num_ranks()));
  result.set("microbatches", number(scenario.plan.microbatches));
  return pretty_text(result);
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
  const Scenario scenario = read_scenario_argument(line, PlacementSearch::allowed);
  print_result((line.format == ResultFormat::json ? json_of(scenario) : text_of(scenario)) + "\n");
  return exit_done;
}

}  // namespace windtunnel
