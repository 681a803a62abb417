#include "search/rank_command.hpp"

#include <ostream>
#include <utility>

#include "core/file_io.hpp"
#include "core/problem.hpp"
#include "report/number_text.hpp"
#include "report/progress_line.hpp"
#include "search/launch_arguments.hpp"
#include "search/plan_explanation.hpp"
#include "search/plan_text.hpp"
#include "search/rank.hpp"
#include "search/rank_json.hpp"
#include "search/rank_placement.hpp"
#include "search/rank_text.hpp"
#include "simulate/forked.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// "█████▌   12 simulated, 9 to rule out, best 13.28 s"
std::string progress_text(const RankProgress& progress) {
  constexpr int width = 30;
  const double done = static_cast<double>(progress.simulated);
  const double share = done / (done + static_cast<double>(progress.left));
  return left_aligned(bar_text(share, width), width) + " " + std::to_string(progress.simulated) +
         " simulated, " + std::to_string(progress.left) + " to rule out" +
         (progress.best ? ", best " + to_text(*progress.best) : "");
}

std::string joined(const std::vector<std::string>& arguments) {
  std::string text;
  for (const std::string& argument : arguments) text += (text.empty() ? "" : " \\\n") + argument;
  return text + "\n";
}

/// Which GPU plays which rank, in the file that was named for it.
void write_host_map(const std::string& file, const Plan& plan, std::ostream& messages) {
  if (file.empty()) {
    messages << "note: --host-map FILE writes which GPU plays which rank\n";
    return;
  }
  write_file_atomically(file, host_map(plan));
  messages << "wrote " << file << "\n";
}

/// The best plan as its training program wants it.
void emit(const Scenario& base, const RankRequest& request, const RankResult& result,
          std::ostream& out, std::ostream& messages) {
  const RankedPlan& best = result.plans.front();
  const Plan plan = std::get<Plan>(lay_out(base, result.space, best.choice));
  write_host_map(request.host_map, plan, messages);
  if (request.emit == LaunchFormat::deepspeed) {
    if (plan.parallel.zero_stage == 2 && plan.parallel.pipeline > 1)
      messages << "note: DeepSpeed's pipeline engine refuses zero_stage 2: with pipelines it "
                  "shards the optimizer alone, zero_stage 1\n";
    if (plan.parallel.zero_stage > 0 && plan.parallel.zero_group > 0)
      messages << "note: DeepSpeed's configuration has no zero_group: states are written as shared "
                  "out among all replicas\n";
    if (plan.parallel.pipeline > 1 && !plan.parallel.schedule->is_deepspeeds)
      messages << "note: DeepSpeed's pipeline engine does not run the schedule "
               << plan.parallel.schedule->name << "\n";
    out << deepspeed_config(plan);  // JSON already
  } else if (request.emit == LaunchFormat::torchtitan) {
    const LaunchArguments launch = torchtitan_config(plan, base.model.sequence);
    for (const std::string& note : launch.notes) messages << "note: " << note << "\n";
    out << launch.arguments.front();
  } else if (request.format == RankFormat::json) {
    out << launch_json(base, best, plan);
  } else {
    const LaunchArguments launch = megatron_arguments(plan);
    for (const std::string& note : launch.notes) messages << "note: " << note << "\n";
    out << joined(launch.arguments);
  }
}

int explain(const Scenario& base, const RankRequest& request, const PlanChoice& choice,
            const RankResult& result, std::ostream& out) {
  const PlanExplanation explanation = explain_plan(base, choice, result);
  out << (request.format == RankFormat::json ? explanation_json(base, explanation)
                                             : explanation_text(base, explanation, request.colour));
  return explanation.is_rejected() ? 1 : 0;
}

}  // namespace

RankOptions rank_options(const RankRequest& request, ProgressLine& line) {
  RankOptions options;
  options.top = request.top;
  options.budget = request.budget;
  options.at_once = request.jobs == 0 ? default_at_once() : request.jobs;
  options.on_progress = [&line](const RankProgress& progress) {
    line.show(progress_text(progress));
  };
  return options;
}

int run_rank(const Scenario& base, const RankRequest& request, std::ostream& out,
             std::ostream& messages) {
  std::optional<PlanChoice> question;
  if (!request.why.empty()) question = read_plan_text(request.why, base, search_space(base));
  RankResult result;
  {
    ProgressLine line(messages, request.progress);
    result = rank_plans(base, rank_options(request, line));
    place_ranked_plans(base, result);
  }
  if (question) return explain(base, request, *question, result, out);
  if (request.emit != LaunchFormat::none && !result.plans.empty())
    emit(base, request, result, out, messages);
  else
    out << (request.format == RankFormat::json ? rank_json(base, result)
                                               : rank_text(base, result, request.colour));
  return result.plans.empty() ? 1 : 0;
}

}  // namespace windtunnel
