#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/option_error.hpp"
#include "importers/trace_comparison.hpp"
#include "questions/compare.hpp"
#include "report/comparison.hpp"
#include "windtunnel/command_line.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/outputs.hpp"
#include "windtunnel/scenario_argument.hpp"

namespace windtunnel {
namespace {

/// The results of `read` on each file, or every file's problems at once.
template <class Read>
auto all_read(const std::vector<std::string>& files, const Read& read) {
  std::vector<decltype(read(files.front()))> inputs;
  Problems problems;
  for (const std::string& file : files) try {
      inputs.push_back(read(file));
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems()) problems.add(problem);
    }
  problems.throw_if_any();
  return inputs;
}

/// A trace as it is, all else as `compare` reads it.
TimelineInput input_of(const std::string& argument, const std::filesystem::path& file,
                       const CommandLine& line, const Library& library) {
  if (is_trace_file(file)) return {argument, file};
  CompareInput input = read_compare_input(file, library, {line.overrides, line.seed});
  if (auto* scenario = std::get_if<Scenario>(&input.content))
    return {argument, std::move(*scenario)};
  throw option_error("compare", argument,
                     argument + " is a report, which holds no timeline to lay beside a trace",
                     "give the scenario, or the trace of its run --trace");
}

void check_options(const CommandLine& line, bool any_scenario) {
  if (!line.toggle.empty())
    throw UsageError("compare --toggle needs a scenario, and " + line.arguments.front() +
                     " is a trace");
  refuse_if(!any_scenario && !line.overrides.empty(),
            "--set changes scenarios, and all of the files are traces");
  refuse_if(line.break_even,
            "compare --break-even needs scenarios, and one of the files is a trace");
}

/// `compare` where one of the files is a trace: timelines side by side. Nothing where none is.
std::optional<ExitCode> compare_timelines_if_any(const CommandLine& line) {
  const Library library = Library::find();
  bool any_trace = false, any_scenario = false;
  for (const std::string& argument : line.arguments)
    (is_trace_file(scenario_file_for(argument, library)) ? any_trace : any_scenario) = true;
  if (!any_trace) return std::nullopt;
  check_options(line, any_scenario);
  const auto read = [&](const std::string& argument) {
    return input_of(argument, scenario_file_for(argument, library), line, library);
  };
  const TimelineComparison comparison = compare_timelines(all_read(line.arguments, read), library);
  if (!line.report.empty()) write_output(line, line.report, timeline_comparison_page(comparison));
  if (line.format == ResultFormat::text) {
    print_result(line, timeline_comparison_text(comparison, colour_of_results(line)));
  } else {
    for (const std::string& note : comparison.notes) print_note(line, "note: " + note);
    print_result(line, timeline_comparison_json(comparison));
  }
  const auto fits = [](const ComparedTimeline& run) { return run.fits; };
  return std::ranges::all_of(comparison.runs, fits) ? exit_done : exit_negative;
}

std::vector<CompareInput> inputs_of(const CommandLine& line, const Library& library) {
  const ReadOptions options{line.overrides, line.seed};
  if (!line.toggle.empty())
    return toggle_inputs(scenario_file_for(line.arguments.front(), library), library, options,
                         line.toggle);
  return all_read(line.arguments, [&](const std::string& argument) {
    CompareInput input = read_compare_input(scenario_file_for(argument, library), library, options);
    input.label = argument;
    if (const auto* scenario = std::get_if<Scenario>(&input.content))
      warn_of_absent_nodes(line, *scenario);
    return input;
  });
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
    print_result(line, comparison_text(comparison, colour_of_results(line)));
  } else {
    for (const FailedRun& run : comparison.failed)
      print_note(line, "warning: " + run.label + " could not be simulated: " + run.error);
    for (const std::string& warning : comparison.warnings) print_note(line, "warning: " + warning);
    print_result(line, comparison_json(comparison));
  }
  return comparison.all_fit() ? exit_done : exit_negative;
}

}  // namespace windtunnel
