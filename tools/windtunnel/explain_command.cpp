#include <iostream>

#include "noise/step_series.hpp"
#include "questions/explain.hpp"
#include "report/progress_line.hpp"
#include "simulate/forked.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/outputs.hpp"
#include "windtunnel/scenario_argument.hpp"

namespace windtunnel {
namespace {

Explained explain_with_progress(const CommandLine& line, const Scenario& scenario) {
  const Library library = Library::find();
  ProgressLine progress(std::cerr, progress_style(line));
  ExplainOptions options;
  options.at_once = default_at_once();
  if (line.budget) options.budget = Seconds{static_cast<double>(*line.budget)};
  options.on_done = [&progress](std::size_t done, std::size_t all) {
    progress.show("explain: " + std::to_string(done) + " of " + std::to_string(all) +
                  " what-ifs simulated");
  };
  return explain(scenario, library, options);
}

ExitCode explain_steps(const CommandLine& line) {
  const Scenario scenario = read_placed_scenario_argument(line);
  const NoiseBlock noise = noise_block_of(scenario);
  const ExitCode exit = exit_of_steps(line, scenario);
  const document::Document odds = odds_document(step_odds(scenario, noise, step_options(line)));
  print_result(line, odds);
  return exit;
}

}  // namespace

ExitCode explain_command(const CommandLine& line) {
  if (line.steps > 0) return explain_steps(line);
  CommandLine run = line;  // what repeats it
  run.engine = "native";
  const Scenario scenario = read_placed_scenario_argument(line);
  note_noise(line, scenario);
  note_neighbours(line, scenario);
  Explained explained = explain_with_progress(line, scenario);
  Explanation& explanation = explained.explanation;
  add_commands(asked_run(run), scenario, explanation);
  if (!line.report.empty())
    write_output(line, line.report, page_of(scenario, explained.simulation, explanation));
  if (line.format == ResultFormat::json)
    print_result(line, pretty_text(explanation_value(explanation)) + "\n");
  else
    print_result(line, explanation_text(explanation, colour_of_results(line)));
  return explanation.report.memory.fits ? exit_done : exit_negative;
}

}  // namespace windtunnel
