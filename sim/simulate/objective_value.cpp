#include "simulate/objective_value.hpp"

#include <algorithm>
#include <cmath>

#include "core/contracts.hpp"
#include "report/number_text.hpp"

namespace windtunnel {
namespace {

bool is_communication(Line line) {
  switch (line) {
    case Line::tensor_comm:
    case Line::pipeline_comm:
    case Line::data_comm:
    case Line::embedding_sync:
    case Line::expert_comm:
    case Line::context_comm:
      return true;
    default:
      return false;
  }
}

/// Steps of the whole job.
double steps_of(const JobBlock& job, double tokens) {
  return job.steps > 0 ? job.steps : std::ceil(job.tokens / tokens);
}

std::optional<JobBlock> job_for(const Scenario& scenario, Objective objective,
                                const std::string& asked_at) {
  if (objective == Objective::time || objective == Objective::tokens_per_second)
    return std::nullopt;
  Problems problems;
  const JsonValue* block = scenario.resolved.find("job");
  const std::string name = name_of(objective);
  const auto need = [&](const char* what, const char* write) {
    problems.add({scenario.resolved.origin, asked_at, name + " needs " + what, write});
  };
  if (block == nullptr || !block->is_object()) {
    need("a job block", R"(add "job": {"tokens": 2e12, "price": {"gpu_hour": 2}})");
    problems.throw_if_any();
  }
  JobBlock job = job_block_of(scenario);
  if (objective == Objective::cost_per_token && !job.price)
    need("the price of a GPU", R"(add "price": {"gpu_hour": 2} to job)");
  if (objective == Objective::energy_per_token && !job.power)
    need("the power of a GPU",
         R"(add "power": {"computing": 700, "communicating": 400, "idle": 100} to job)");
  problems.throw_if_any();
  return job;
}

}  // namespace

StepShares shares_of(const Breakdown& breakdown) {
  StepShares shares;
  const Seconds total = breakdown.total();
  if (!(total > Seconds{})) return shares;
  Seconds communicating{};
  for (const Line line : all_lines)
    if (is_communication(line)) communicating += breakdown.of(line);
  shares.communicating = communicating / total;
  const Seconds waiting = breakdown.of(Line::pipeline_bubble) + breakdown.of(Line::peer_wait);
  shares.computing = 1 - shares.communicating - waiting / total;
  return shares;
}

double gpu_watts(const JobBlock::Power& power, const StepShares& shares) {
  return shares.computing * power.computing + shares.communicating * power.communicating +
         (1 - shares.computing - shares.communicating) * power.idle;
}

JobBlock job_block_of(const Scenario& scenario) {
  JsonValue tree = scenario.resolved;
  Problems problems;
  JsonValue* block = tree.find("job");
  if (block == nullptr || !block->is_object())
    problems.add({tree.origin, "/job", "the scenario has no job block",
                  "write \"job\": {\"tokens\": 2e12}"});
  problems.throw_if_any();
  JobBlock job = read_job(ObjectReader(*block, "/job", problems));
  problems.throw_if_any();
  return job;
}

ObjectiveValue::ObjectiveValue(const Scenario& scenario, Objective objective,
                               const std::string& asked_at)
    : objective_(objective), job_(job_for(scenario, objective, asked_at)) {
  const Plan& plan = scenario.plan;
  tokens_ = static_cast<double>(plan.training.global_batch) * scenario.model.sequence;
  nodes_ = plan.num_nodes;
  gpus_ = nodes_ * plan.gpus_per_node;
  ranks_ = plan.num_ranks();
}

double ObjectiveValue::value(Seconds time, const StepShares& shares) const {
  const double seconds = time / Seconds{1};
  switch (objective_) {
    case Objective::time:
      return seconds;
    case Objective::tokens_per_second:
      return tokens_ / seconds;
    case Objective::cost_per_token:
      return gpus_ * job_->price->gpu_hour * (seconds / seconds_per_hour) / tokens_;
    case Objective::energy_per_token: {
      const JobBlock::Power& power = *job_->power;
      const double watts =
          ranks_ * gpu_watts(power, shares) + (gpus_ - ranks_) * power.idle + nodes_ * power.node;
      return watts * power.overhead * seconds / tokens_;
    }
    case Objective::days:
      return steps_of(*job_, tokens_) * seconds / seconds_per_day;
  }
  WT_UNREACHABLE();
}

double ObjectiveValue::penalty(Seconds time, const StepShares& shares) const {
  const double result = value(time, shares);
  return objective_ == Objective::tokens_per_second ? -result : result;
}

double ObjectiveValue::least_penalty(Seconds time) const {
  if (objective_ != Objective::energy_per_token) return penalty(time, {});
  const JobBlock::Power& power = *job_->power;
  const double least = std::min({power.computing, power.communicating, power.idle});
  if (least == power.computing) return penalty(time, {1, 0});
  return penalty(time, least == power.communicating ? StepShares{0, 1} : StepShares{0, 0});
}

ObjectiveColumn column_of(Objective objective, const std::string& currency) {
  constexpr double million = 1e6;
  if (objective == Objective::cost_per_token) return {currency + " per 10^6 tokens", million};
  return {unit_of(objective), 1};
}

std::string number_text(const ObjectiveColumn& column, double value) {
  constexpr int digits = 4;
  return significant_text(value * column.scale, digits);
}

}  // namespace windtunnel
