#include <iostream>
#include <sstream>
#include <utility>

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
  std::ostringstream result, quiet;
  std::ostream& messages = line.verbosity == Verbosity::quiet ? quiet : std::cerr;
  const Library library = Library::find();
  CalibrateRequest request = line.calibrate;
  request.sets = line.arguments;
  request.file = fitted_file(line);
  for (const auto& [name, file] : {std::pair{&request.advise_name, &request.advise},
                                   {&request.against_name, &request.against},
                                   {&request.predict_name, &request.predict}})
    if (!name->empty()) *file = scenario_file_for(*name, library);
  request.prior = enumerator_named<PriorKind>(line.prior);
  if (line.fit_draws > 0)
    request.draws =
        DrawPlan{line.fit_draws,
                 line.fit_rows > 0 ? static_cast<std::size_t>(line.fit_rows) : DrawPlan{}.rows};
  request.residuals = line.residuals;
  request.overrides = line.overrides;
  request.seed = line.seed;
  request.format = line.format;
  request.progress = progress_style(line);
  const int code = line.memory
                       ? run_memory_calibration(request, line.output, library, result, messages)
                       : run_calibrate(request, library, result, messages);
  if (code != exit_done) std::cerr << quiet.str();
  print_result(line, result.str());
  return static_cast<ExitCode>(code);
}

}  // namespace windtunnel
