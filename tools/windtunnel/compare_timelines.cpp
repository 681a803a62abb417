#include "windtunnel/compare_timelines.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/option_error.hpp"
#include "importers/trace_comparison.hpp"
#include "questions/compare.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/outputs.hpp"
#include "windtunnel/scenario_argument.hpp"

namespace windtunnel {
namespace {

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
  if (!any_scenario && !line.overrides.empty())
    throw UsageError("--set changes scenarios, and all of the files are traces");
  if (line.break_even)
    throw UsageError("compare --break-even needs scenarios, and one of the files is a trace");
}

}  // namespace

std::optional<ExitCode> compare_timelines_if_any(const CommandLine& line) {
  const Library library = Library::find();
  std::vector<std::filesystem::path> files;
  bool any_trace = false, any_scenario = false;
  for (const std::string& argument : line.arguments) {
    files.push_back(scenario_file_for(argument, library));
    (is_trace_file(files.back()) ? any_trace : any_scenario) = true;
  }
  if (!any_trace) return std::nullopt;
  check_options(line, any_scenario);
  std::vector<TimelineInput> inputs;
  Problems problems;
  for (std::size_t i = 0; i < files.size(); ++i) try {
      inputs.push_back(input_of(line.arguments[i], files[i], line, library));
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems()) problems.add(problem);
    }
  problems.throw_if_any();
  const TimelineComparison comparison = compare_timelines(inputs, library);
  if (!line.report.empty()) write_output(line, line.report, timeline_comparison_page(comparison));
  if (line.format == ResultFormat::text) {
    print_result(timeline_comparison_text(comparison, colour_of_results(line)));
  } else {
    if (line.verbosity == Verbosity::normal)
      for (const std::string& note : comparison.notes) print_message("note: " + note);
    print_result(timeline_comparison_json(comparison));
  }
  const auto fits = [](const ComparedTimeline& run) { return run.fits; };
  return std::all_of(comparison.runs.begin(), comparison.runs.end(), fits) ? exit_done
                                                                           : exit_negative;
}

}  // namespace windtunnel
