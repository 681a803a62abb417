#include "search/rank_command.hpp"

#include <iostream>
#include <sstream>

#include "search/search_space.hpp"
#include "studies/method_command.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/scenario_argument.hpp"

namespace windtunnel {
ExitCode rank_command(const CommandLine& line) {
  const Scenario base =
      on_segment_of_search(read_scenario_argument(line, PlacementSearch::allowed));
  note_noise(line, base);
  RankRequest request;
  request.top = line.top;
  request.budget = line.budget;
  request.jobs = line.jobs;
  request.why = line.why;
  request.method = line.method;
  request.evidence = read_evidence(Library::find());
  request.host_map = line.host_map;
  if (!line.emit.empty())
    request.emit = line.emit == "megatron"    ? LaunchFormat::megatron
                   : line.emit == "deepspeed" ? LaunchFormat::deepspeed
                                              : LaunchFormat::torchtitan;
  request.format = line.format == ResultFormat::json ? RankFormat::json : RankFormat::text;
  request.colour = colour_of_results(line);
  request.progress = progress_style(line);
  std::ostringstream result, quiet;
  std::ostream& messages = line.verbosity == Verbosity::quiet ? quiet : std::cerr;
  const auto run = line.method.empty() ? run_rank : run_method;
  const int code = run(base, request, result, messages);
  if (line.emit.empty())
    print_result(line, result.str());
  else
    print_result(result.str());  // a launch script reads it
  return static_cast<ExitCode>(code);
}

}  // namespace windtunnel
