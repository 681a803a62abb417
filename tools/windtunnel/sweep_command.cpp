#include <cstdlib>
#include <iostream>
#include <sstream>

#include "search/rank.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/scenario_argument.hpp"
#include "windtunnel/version_text.hpp"

namespace windtunnel {
namespace {

SweepMode mode_of(const CommandLine& line) {
  if (line.worker) return SweepMode::worker;
  if (line.status) return SweepMode::status;
  return line.dry_run ? SweepMode::dry_run : SweepMode::run;
}

}  // namespace

ExitCode sweep_command(const CommandLine& line) {
  const Library library = Library::find();
  SweepRequest request = line.sweep;
  request.file = scenario_file_for(line.arguments.front(), library);
  request.directory = line.out;
  request.report = line.report;
  request.mode = mode_of(line);
  request.overrides = line.overrides;
  if (!line.baseline.empty()) request.overrides.emplace_back("/sweep/baseline", line.baseline);
  request.seed = line.seed;
  request.jobs = line.jobs;
  request.choose_plan = plan_chooser("/sweep/plan");
  request.version = version_text();
  request.format = line.format;
  request.progress = progress_style(line);
  request.variable = [](const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return std::string(value == nullptr ? "" : value);
  };
  std::ostringstream result;
  const int code = run_sweep(request, library, result, std::cerr);
  print_result(line, result.str());
  return static_cast<ExitCode>(code);
}

}  // namespace windtunnel
