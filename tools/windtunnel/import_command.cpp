#include <sstream>

#include "importers/importer.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"

namespace windtunnel {

ExitCode import_command(const CommandLine& line) {
  const ImportRequest request{line.arguments.front(),
                              {line.arguments.begin() + 1, line.arguments.end()},
                              line.output,
                              line.import,
                              line.report};
  std::ostringstream result;
  run_import(request, line.format, Library::find(), result, notes_of(line));
  print_result(line, result.str());
  return exit_done;
}

}  // namespace windtunnel
