#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>

#include "core/json_value.hpp"
#include "report/progress_line.hpp"
#include "scenario/scenario.hpp"
#include "search/placement_search.hpp"
#include "search/rank.hpp"
#include "studies/job_run.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/outputs.hpp"
#include "windtunnel/scenario_argument.hpp"

namespace windtunnel {
namespace {

JobOptions job_options(const CommandLine& line, ProgressLine& progress) {
  return {.draws = static_cast<std::size_t>(line.draws),
          .seed = line.seed,
          .at_once = at_once(line),
          .on_progress = [&progress](const std::string& done) { progress.show("job: " + done); }};
}

ExitCode run_swept_job(const CommandLine& line, const std::filesystem::path& file) {
  const Library library = Library::find();
  const Sweep sweep(file, library, {line.overrides, line.seed}, plan_chooser("/sweep/plan"));
  ProgressLine progress(std::cerr, progress_style(line));
  const std::vector<JobPoint> points =
      run_job_points(sweep, job_options(line, progress), read_evidence(library));
  const document::Document document = job_points_document(sweep.name(), points);
  write_outputs(line, {{line.report, [&] { return page_of(document); }},
                       {line.csv, [&] { return job_points_csv(points); }}});
  print_result(line, document);
  const bool all_fit = std::ranges::all_of(
      points, [](const JobPoint& point) { return point.result && point.result->fits(); });
  return all_fit ? exit_done : exit_negative;
}

}  // namespace

ExitCode job_command(const CommandLine& line) {
  const Library library = Library::find();
  const std::filesystem::path file = scenario_file_for(line.arguments.front(), library);
  const JsonValue merged = merged_scenario(file, library, {line.overrides});
  const JsonValue* sweep = merged.find("sweep");
  if (sweep != nullptr && !sweep->is_null()) return run_swept_job(line, file);
  ProgressLine progress(std::cerr, progress_style(line));
  const auto read = [&](const PointValues& values) {
    return read_scenario(
        file, library, {line.overrides, line.seed, LeftToCaller::neighbours_and_placement, values});
  };
  const JobRun run =
      run_job(job_wants_best_plan(merged) ? prepare_scenario(read_with_any_plan(merged, read))
                                          : read_placed_scenario_argument(line),
              job_options(line, progress), read_evidence(library));
  const document::Document job = job_document(run.result);
  write_outputs(line, {{line.report, [&] { return page_of(job); }},
                       {line.csv, [&] { return job_csv(run.result); }}});
  if (!run.result.fits())
    print_note(line, "warning: the plan does not fit in the memory of its GPUs");
  print_result(line, job);
  return run.result.fits() ? exit_done : exit_negative;
}

}  // namespace windtunnel
