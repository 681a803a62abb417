#include "codec/codec_command.hpp"

#include <iostream>
#include <sstream>

#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"

namespace windtunnel {

ExitCode codec_command(const CommandLine& line) {
  CodecRequest request = line.codec;
  if (!line.arguments.empty()) request.file = line.arguments.front();
  request.seed = line.seed;
  request.output = line.output;
  request.format = line.format;
  std::ostringstream result, quiet;
  run_codec(request, result, line.verbosity == Verbosity::quiet ? quiet : std::cerr);
  print_result(line, result.str());
  if (!line.output.empty() && line.verbosity == Verbosity::normal)
    print_message("wrote " + line.output);
  return exit_done;
}

}  // namespace windtunnel
