#include "codec/codec_command.hpp"

#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/outputs.hpp"

namespace windtunnel {

ExitCode codec_command(const CommandLine& line) {
  CodecRequest request = line.codec;
  if (!line.arguments.empty()) request.file = line.arguments.front();
  request.seed = line.seed;
  const document::Document document = run_codec(request, notes_of(line));
  write_outputs(line, {{line.output, [&] { return json_of(document); }},
                       {line.report, [&] { return page_of(document); }}});
  print_result(line, document);
  return exit_done;
}

}  // namespace windtunnel
