#include "questions/compare.hpp"
#include "report/compare_page.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/compare_timelines.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/outputs.hpp"
#include "windtunnel/scenario_argument.hpp"

namespace windtunnel {
namespace {

/// Every file's problems at once.
std::vector<CompareInput> read_inputs(const CommandLine& line, const Library& library) {
  const ReadOptions options{line.overrides, line.seed};
  std::vector<CompareInput> inputs;
  Problems problems;
  for (const std::string& argument : line.arguments) try {
      inputs.push_back(read_compare_input(scenario_file_for(argument, library), library, options));
      inputs.back().label = argument;
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems()) problems.add(problem);
    }
  problems.throw_if_any();
  return inputs;
}

std::vector<CompareInput> inputs_of(const CommandLine& line, const Library& library) {
  if (line.toggle.empty()) return read_inputs(line, library);
  return toggle_inputs(scenario_file_for(line.arguments.front(), library), library,
                       {line.overrides, line.seed}, line.toggle);
}

}  // namespace

ExitCode compare_command(const CommandLine& line) {
  if (const auto done = compare_timelines_if_any(line)) return *done;
  const Library library = Library::find();
  const std::vector<CompareInput> inputs = inputs_of(line, library);
  for (const CompareInput& input : inputs)
    if (const auto* scenario = std::get_if<Scenario>(&input.content);
        scenario != nullptr && scenario->resolved.find("noise") != nullptr) {
      note_noise(line, *scenario);
      break;
    }
  const Comparison comparison =
      compare(inputs, library, line.break_even ? BreakEvens::simulated : BreakEvens::none,
              line.report.empty() ? RunDetail::report : RunDetail::page);
  if (!line.report.empty()) write_output(line, line.report, compare_page(comparison));
  if (line.format == ResultFormat::text) {
    print_result(comparison_text(comparison, colour_of_results(line)));
  } else {
    if (line.verbosity == Verbosity::normal) {
      for (const FailedRun& run : comparison.failed)
        print_message("warning: " + run.label + " could not be simulated: " + run.error);
      for (const std::string& warning : comparison.warnings) print_message("warning: " + warning);
    }
    print_result(comparison_json(comparison));
  }
  return comparison.all_fit() ? exit_done : exit_negative;
}

}  // namespace windtunnel
