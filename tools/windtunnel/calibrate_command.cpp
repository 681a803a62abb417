#include "calibrate/calibrate_command.hpp"

#include <iostream>
#include <sstream>

#include "calibrate/memory_calibration.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/scenario_argument.hpp"

namespace windtunnel {
namespace {

std::optional<FittedFile> fitted_file(const CommandLine& line) {
  if (!line.device.empty()) return FittedFile{"--device", line.device, line.output};
  if (!line.software.empty()) return FittedFile{"--software", line.software, line.output};
  if (!line.platform.empty()) return FittedFile{"--platform", line.platform, line.output};
  return std::nullopt;
}

}  // namespace

ExitCode calibrate_command(const CommandLine& line) {
  const bool is_json = line.format == ResultFormat::json;
  std::ostringstream result, quiet;
  std::ostream& messages = line.verbosity == Verbosity::quiet ? quiet : std::cerr;
  const Library library = Library::find();
  CalibrateRequest request;
  request.sets = line.arguments;
  request.fit = line.fit;
  request.file = fitted_file(line);
  if (!line.advise.empty()) {
    request.advise = scenario_file_for(line.advise, library);
    request.advise_name = line.advise;
    if (!line.against.empty()) request.against = scenario_file_for(line.against, library);
    request.against_name = line.against;
  }
  if (!line.predict.empty()) {
    request.predict = scenario_file_for(line.predict, library);
    request.predict_name = line.predict;
  }
  if (!line.prior.empty())
    request.prior = line.prior == "none" ? PriorKind::none : PriorKind::shipped;
  if (line.fit_draws > 0)
    request.draws =
        DrawPlan{line.fit_draws,
                 line.fit_rows > 0 ? static_cast<std::size_t>(line.fit_rows) : DrawPlan{}.rows};
  request.residuals = line.residuals;
  request.overrides = line.overrides;
  request.seed = line.seed;
  request.format = is_json ? CalibrationFormat::json : CalibrationFormat::text;
  request.progress = progress_style(line);
  const int code = line.memory
                       ? run_memory_calibration(request, line.output, library, result, messages)
                       : run_calibrate(request, library, result, messages);
  if (code != exit_done) std::cerr << quiet.str();
  print_result(line, result.str());
  return static_cast<ExitCode>(code);
}

}  // namespace windtunnel
