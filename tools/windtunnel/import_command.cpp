#include <iostream>
#include <sstream>

#include "importers/importer.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"

namespace windtunnel {

ExitCode import_command(const CommandLine& line) {
  ImportRequest request;
  request.kind = line.arguments.front();
  request.inputs.assign(line.arguments.begin() + 1, line.arguments.end());
  request.output = line.output;
  request.options = line.import;
  std::ostringstream result, quiet;
  std::ostream& messages = line.verbosity == Verbosity::quiet ? quiet : std::cerr;
  run_import(request, line.format, Library::find(), result, messages);
  print_result(line, result.str());
  return exit_done;
}

}  // namespace windtunnel
