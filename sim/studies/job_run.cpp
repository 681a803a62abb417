#include "studies/job_run.hpp"

#include <memory>
#include <utility>

#include "core/problem.hpp"
#include "evidence/interval.hpp"
#include "noise/step_series.hpp"
#include "search/rank.hpp"
#include "simulate/objective_value.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

/// "searching the plan: 12 simulated, 40 to rule out"; empty where nobody listens.
std::function<void(const RankProgress&)> plan_progress(
    const std::function<void(const std::string&)>& listener) {
  if (!listener) return {};
  return [&listener](const RankProgress& progress) {
    listener("searching the plan: " + std::to_string(progress.simulated) + " simulated, " +
             std::to_string(progress.left) + " to rule out");
  };
}

/// The scenario with the plan that its job asks for.
Scenario with_asked_plan(Scenario scenario, const JobOptions& options) {
  // Problems of the block are reported before anything is simulated.
  if (job_block_of(scenario).plan == JobPlan::given) return scenario;
  if (options.on_progress) options.on_progress("searching the plan");
  return with_best_plan(
      std::move(scenario),
      {.top = 1, .at_once = options.at_once, .on_progress = plan_progress(options.on_progress)},
      "/job/plan");
}

/// Steps that are simulated with the scenario's noise, from which those of the job are taken. A step time that was measured keeps its length.
std::vector<double> noisy_steps(const Scenario& scenario, const JobOptions& job) {
  constexpr std::size_t simulated_steps = 200;
  const JsonValue* block = scenario.resolved.find("noise");
  if (block == nullptr || block->is_null()) return {};
  const NoiseBlock noise = noise_block_of(scenario);
  if (noise.is_none()) return {};
  const StepSeries series = simulate_steps(
      scenario, noise, {.steps = simulated_steps, .seed = job.seed, .at_once = job.at_once});
  std::vector<double> factors;
  for (const Seconds time : series.times) factors.push_back(time / series.without_noise);
  return factors;
}

/// Its label, the name that it sets, or "platform dgx-h100, nodes 128".
std::string words_of(const SweepPoints& points, std::size_t index) {
  std::string words = points.label(index);
  if (!words.empty()) return words;
  for (const auto& [pointer, value] : points.values(index)) {
    const std::string text = value.is_string() ? value.string() : canonical_text(value);
    if (pointer == "/name") return text;
    words += (words.empty() ? "" : ", ") + pointer.substr(pointer.rfind('/') + 1) + " " + text;
  }
  return words;
}

JobPoint run_point(const Sweep& sweep, std::size_t index, const JobOptions& options,
                   const MeasuredErrors& errors) {
  JobPoint point;
  point.values = words_of(sweep.points(), index);
  try {
    JobRun run = run_job(sweep.planned(sweep.job_scenario(index)), options, errors);
    run.result.draws = {};
    if (run.result.step_interval) point.judged = std::move(run.judged);
    point.result = std::move(run.result);
  } catch (const InputError& error) {
    const Problem& problem = error.problems().front();
    point.problem =
        problem.message + (problem.suggestion.empty() ? "" : " (" + problem.suggestion + ")");
  }
  return point;
}

}  // namespace

JobRun run_job(Scenario as_read, JobOptions options, const MeasuredErrors& errors) {
  const Scenario scenario = with_asked_plan(std::move(as_read), options);
  Report report = simulate(scenario).report;
  if (!errors.regimes.empty()) add_interval(scenario, errors, report);
  options.noisy_steps = noisy_steps(scenario, options);
  return {simulate_job(scenario, report, options),
          judged_run(scenario, report.iteration_time, report.breakdown,
                     report.iteration_time_interval)};
}

std::vector<JobPoint> run_job_points(const Sweep& sweep, const JobOptions& options,
                                     const MeasuredErrors& errors) {
  sweep.expect_a_readable_point(&Sweep::job_scenario);
  std::vector<JobPoint> points;
  for (std::size_t i = 0; i < sweep.points().size(); ++i) {
    JobOptions of_point = options;
    if (options.on_progress)
      of_point.on_progress = [&, lead = "point " + std::to_string(i + 1) + " of " +
                                        std::to_string(sweep.points().size()) + ": "](
                                 const std::string& done) { options.on_progress(lead + done); };
    if (sweep.choices().plan == JobPlan::best && of_point.on_progress)
      of_point.on_progress("searching the plan");
    points.push_back(run_point(sweep, i, of_point, errors));
  }
  const auto pairs = std::make_shared<const PairErrors>(errors.pairs);
  for (JobPoint& point : points) point.pairs = pairs;
  mark_front(points);
  return points;
}

}  // namespace windtunnel
