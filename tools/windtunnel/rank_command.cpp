#include "search/rank_command.hpp"

#include <optional>
#include <tuple>

#include "search/search_space.hpp"
#include "simulate/neighbours.hpp"
#include "studies/method_command.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/outputs.hpp"
#include "windtunnel/scenario_argument.hpp"

namespace windtunnel {
ExitCode rank_command(const CommandLine& line) {
  const Scenario asked = with_neighbours(
      on_segment_of_search(read_scenario_argument(line, LeftToCaller::neighbours_and_placement)));
  note_noise(line, asked);
  note_neighbours(line, asked);
  RankRequest request = line.rank;
  std::optional<Scenario> elsewhere;  // with nodes avoided
  if (!request.avoid.empty()) {
    std::tie(elsewhere, request.avoided) = avoid_nodes(asked, request.avoid);
    request.with_nothing_avoided = &asked;
    warn_of_absent_nodes(line, *elsewhere);
  }
  const Scenario& base = elsewhere ? *elsewhere : asked;
  request.budget = line.budget;
  request.jobs = line.jobs;
  request.evidence = read_evidence(Library::find());
  request.emit = enumerator_named<LaunchFormat>(line.emit).value_or(LaunchFormat::none);
  request.launch_as_json = line.format == ResultFormat::json;
  request.progress = progress_style(line);
  const auto run = line.rank.method.empty() ? run_rank : run_method;
  const RankAnswer answer = run(base, request, notes_of(line));
  write_outputs(line, {{line.report, [&] { return page_of(answer.document); }}});
  if (answer.launch.empty())
    print_result(line, answer.document);
  else
    print_result(answer.launch);  // a launch script reads it
  return answer.is_positive ? exit_done : exit_negative;
}

}  // namespace windtunnel
