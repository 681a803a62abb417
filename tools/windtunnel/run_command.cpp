#include <filesystem>
#include <string>

#include "core/file_io.hpp"
#include "report/chrome_trace.hpp"
#include "report/report_json.hpp"
#include "report/summary_text.hpp"
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

void write_outputs(const CommandLine& line, const Scenario& scenario,
                   const Simulation& simulation) {
  const std::filesystem::path folder = line.out;
  if (!line.out.empty())
    write_output(line, folder / "report.json", with_line_end(to_json(simulation.report)));
  if (line.trace.empty() && line.out.empty()) return;
  const std::string trace =
      chrome_trace(simulation.timeline, simulation.programs, scenario.plan, simulation.report);
  if (!line.trace.empty()) write_output(line, line.trace, trace);
  if (!line.out.empty()) write_output(line, folder / "trace.json.gz", trace);
}

}  // namespace

ExitCode run_command(const CommandLine& line) {
  const Scenario scenario = read_scenario_argument(line);
  SimulateOptions options;
  options.keep_timeline = !line.trace.empty() || !line.out.empty();
  const Simulation simulation = simulate(scenario, options);
  const Report& report = simulation.report;
  write_outputs(line, scenario, simulation);
  if (line.verbosity == Verbosity::normal && scenario.resolved.find("sweep") != nullptr)
    print_message("note: run simulates the file's own point, not its sweep");
  if (line.format == ResultFormat::text) {
    print_result(with_line_end(summary_text(report, colour_of_results())));
  } else {
    if (line.verbosity == Verbosity::normal)
      for (const std::string& warning : report.warnings) print_message("warning: " + warning);
    print_result(with_line_end(to_json(report)));
  }
  return report.memory.fits ? exit_done : exit_negative;
}

}  // namespace windtunnel
