#include <filesystem>
#include <set>
#include <string>

#include "core/file_io.hpp"
#include "report/chrome_trace.hpp"
#include "report/report_json.hpp"
#include "report/run_page.hpp"
#include "report/summary_text.hpp"
#include "scenario/resolved_text.hpp"
#include "search/placement_search.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/scenario_argument.hpp"

namespace windtunnel {
namespace {

std::string with_line_end(std::string text) {
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

void write_output(const CommandLine& line, const std::filesystem::path& path,
                  const std::string& text) {
  write_file_atomically(path, path.extension() == ".gz" ? gzip(text) : text);
  if (line.verbosity == Verbosity::normal) print_message("wrote " + path.string());
}

std::string page_of(const Scenario& scenario, const Simulation& simulation) {
  RunPage page;
  page.report = &simulation.report;
  page.played = {&simulation.timeline, &simulation.programs, &simulation.network, &scenario.plan,
                 simulation.report.last_device};
  page.scenario = resolved_text(scenario.resolved);
  return run_page(page);
}

bool writes_files(const CommandLine& line) {
  return !line.trace.empty() || !line.report.empty() || !line.out.empty();
}

void write_outputs(const CommandLine& line, const Scenario& scenario,
                   const Simulation& simulation) {
  const std::filesystem::path folder = line.out;
  if (!line.out.empty())
    write_output(line, folder / "report.json", with_line_end(to_json(simulation.report)));
  if (!line.report.empty() || !line.out.empty()) {
    const std::string page = page_of(scenario, simulation);
    if (!line.report.empty()) write_output(line, line.report, page);
    if (!line.out.empty()) write_output(line, folder / "report.html", page);
  }
  if (line.trace.empty() && line.out.empty()) return;
  const std::string trace =
      chrome_trace(simulation.timeline, simulation.programs, scenario.plan, simulation.report);
  if (!line.trace.empty()) write_output(line, line.trace, trace);
  if (!line.out.empty()) write_output(line, folder / "trace.json.gz", trace);
}

/// The files a scenario was read from.
void collect_sources(const JsonValue& value, std::set<std::string>& files) {
  if (value.origin.kind == OriginKind::file && value.origin.source)
    files.insert(value.origin.source->name);
  if (value.is_object())
    for (const JsonValue::Member& member : value.object()) collect_sources(member.value, files);
  if (value.is_array())
    for (const JsonValue& element : value.array()) collect_sources(element, files);
}

/// Refuses to write over what was read.
void expect_not_an_input(const Scenario& scenario, const std::filesystem::path& output) {
  std::set<std::string> inputs;
  collect_sources(scenario.resolved, inputs);
  for (const std::string& input : inputs) {
    std::error_code ignored;
    if (!std::filesystem::equivalent(input, output, ignored)) continue;
    throw InputError(
        {{{},
          "",
          "the output " + output.string() + " is a file that the scenario was read from",
          "write to another file"}});
  }
}

}  // namespace

ExitCode run_command(const CommandLine& line) {
  Scenario scenario = read_scenario_argument(line, PlacementSearch::allowed);
  for (const std::filesystem::path& output :
       {std::filesystem::path(line.trace), std::filesystem::path(line.report),
        std::filesystem::path(line.out) / "report.json",
        std::filesystem::path(line.out) / "report.html",
        std::filesystem::path(line.out) / "trace.json.gz"})
    expect_not_an_input(scenario, output);
  scenario = place_if_asked(std::move(scenario));
  const Library library = Library::find();
  SimulateOptions options;
  options.evidence = &library;
  options.keep_timeline = writes_files(line);
  const Simulation simulation = simulate(scenario, options);
  const Report& report = simulation.report;
  write_outputs(line, scenario, simulation);
  if (line.verbosity == Verbosity::normal && scenario.resolved.find("sweep") != nullptr)
    print_message("note: run simulates the file's own point, not its sweep");
  if (line.format == ResultFormat::text) {
    print_result(with_line_end(summary_text(report, colour_of_results())));
  } else {
    if (line.verbosity == Verbosity::normal) {
      if (!report.placement_note.empty())
        print_message("placement searched: " + report.placement_note);
      for (const std::string& warning : report.warnings) print_message("warning: " + warning);
    }
    print_result(with_line_end(to_json(report)));
  }
  return report.memory.fits ? exit_done : exit_negative;
}

}  // namespace windtunnel
