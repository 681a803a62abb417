#include "validate/validate_command.hpp"

#include <iostream>
#include <sstream>

#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"

namespace windtunnel {

ExitCode validate_command(const CommandLine& line) {
  ValidateRequest request;
  request.sets = line.arguments;
  request.fail_above = line.fail_above;
  request.overrides = line.overrides;
  request.svg = line.svg;
  request.report = line.report;
  request.residuals = line.residuals;
  request.format = line.format;
  request.detail = line.details                         ? ValidateDetail::rows
                   : line.verbosity == Verbosity::quiet ? ValidateDetail::table
                                                        : ValidateDetail::summary;
  request.progress = progress_style(line);
  std::ostringstream result;
  const int code = run_validate(request, Library::find(), result, std::cerr);
  print_result(line, result.str());
  for (const std::string& file : {line.svg, line.report, line.residuals})
    if (!file.empty()) print_note(line, "wrote " + file);
  return static_cast<ExitCode>(code);
}

}  // namespace windtunnel
