#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "core/problem.hpp"
#include "job/job_points.hpp"
#include "report/progress_line.hpp"
#include "search/rank.hpp"
#include "simulate/simulate.hpp"
#include "simulate/tasks.hpp"
#include "sweep/sweep.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/outputs.hpp"
#include "windtunnel/scenario_argument.hpp"

namespace windtunnel {
namespace {

struct PlayedJob {
  JobResult result;
  bool fits = true;
};

/// The scenario with the plan that its job asks for. InputError where none fits.
Scenario with_plan(const CommandLine& line, Scenario scenario) {
  // What is wrong with the block is said before anything is simulated.
  if (job_block_of(scenario).plan == JobPlan::given) return scenario;
  RankOptions options;
  options.top = 1;
  options.at_once = line.jobs == 0 ? default_at_once() : line.jobs;
  return with_best_plan(std::move(scenario), options, "/job/plan");
}

/// Steps that are played with the scenario's noise, from which those of the job are taken. A step time that was measured keeps its length.
std::vector<double> noisy_steps(const CommandLine& line, const Scenario& scenario) {
  constexpr std::size_t played_steps = 200;
  const JsonValue* block = scenario.resolved.find("noise");
  if (block == nullptr || block->is_null()) return {};
  const NoiseBlock noise = noise_block_of(scenario);
  if (noise.is_none()) return {};
  StepOptions options = step_options(line);
  options.steps = played_steps;
  const StepSeries series = play_steps(scenario, noise, options);
  std::vector<double> factors;
  for (const Seconds time : series.times) factors.push_back(time / series.without_noise);
  return factors;
}

PlayedJob play(const CommandLine& line, Scenario as_read) {
  const Scenario scenario = with_plan(line, std::move(as_read));
  const Report report = simulate(scenario).report;
  JobOptions options;
  options.draws = static_cast<std::size_t>(line.draws);
  options.seed = line.seed;
  options.at_once = line.jobs == 0 ? default_at_once() : line.jobs;
  options.noisy_steps = noisy_steps(line, scenario);
  ProgressLine progress(std::cerr, progress_style(line));
  options.on_draws = [&](std::size_t played) {
    progress.show("job: " + std::to_string(played) + " of " + std::to_string(options.draws) +
                  " draws played");
  };
  return {simulate_job(scenario, report, options), report.memory.fits};
}

/// Its label, or "platform dgx-h100, nodes 128".
std::string words_of(const SweepPoints& points, std::size_t index) {
  std::string words = points.label(index);
  if (!words.empty()) return words;
  for (const auto& [pointer, value] : points.values(index)) {
    const std::string text = value.is_string() ? value.string() : canonical_text(value);
    words += (words.empty() ? "" : ", ") + pointer.substr(pointer.rfind('/') + 1) + " " + text;
  }
  return words;
}

JobPoint play_point(const CommandLine& line, const Sweep& sweep, std::size_t index) {
  JobPoint point;
  point.values = words_of(sweep.points(), index);
  try {
    PlayedJob played = play(line, sweep.planned(sweep.scenario(index)));
    played.result.draws = {};
    point.fits = played.fits;
    point.result = std::move(played.result);
  } catch (const InputError& error) {
    point.problem = error.problems().front().message;
  }
  return point;
}

ExitCode play_sweep(const CommandLine& line, const std::filesystem::path& file) {
  ReadOptions options;
  options.overrides = line.overrides;
  options.seed = line.seed;
  const Library library = Library::find();
  const Sweep sweep(file, library, options, plan_chooser("/sweep/plan"));
  sweep.expect_a_readable_point();
  std::vector<JobPoint> points;
  for (std::size_t i = 0; i < sweep.points().size(); ++i)
    points.push_back(play_point(line, sweep, i));
  mark_front(points);
  const document::Document document = job_points_document(sweep.name(), points);
  write_outputs(line, {{line.report, [&] { return page_of(document); }},
                       {line.csv, [&] { return job_points_csv(points); }}});
  print_result(line, line.format == ResultFormat::json ? json_of(document) : text_of(document));
  for (const JobPoint& point : points)
    if (!point.result || !point.fits) return exit_negative;
  return exit_done;
}

}  // namespace

ExitCode job_command(const CommandLine& line) {
  const Library library = Library::find();
  const std::filesystem::path file = scenario_file_for(line.arguments.front(), library);
  if (line.arguments.front() != "-") {
    ReadOptions options;
    options.overrides = line.overrides;
    const JsonValue merged = merged_scenario(file, library, options);
    const JsonValue* sweep = merged.find("sweep");
    if (sweep != nullptr && !sweep->is_null()) return play_sweep(line, file);
  }
  const Scenario scenario = read_placed_scenario_argument(line);
  const PlayedJob played = play(line, scenario);
  const document::Document job = job_document(played.result);
  write_outputs(line, {{line.report, [&] { return page_of(job); }},
                       {line.csv, [&] { return job_csv(played.result); }}});
  if (!played.fits && line.verbosity == Verbosity::normal)
    print_message("warning: the plan does not fit in the memory of its GPUs");
  print_result(line, line.format == ResultFormat::json ? json_of(job) : text_of(job));
  return played.fits ? exit_done : exit_negative;
}

}  // namespace windtunnel
