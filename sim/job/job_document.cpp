#include <string>
#include <utility>

#include "core/json_build.hpp"
#include "core/json_value.hpp"
#include "job/job_result.hpp"
#include "report/seed_value.hpp"

namespace windtunnel {
namespace {

JsonValue number(double value) { return JsonValue(value); }
JsonValue count(std::int64_t value) { return JsonValue(value); }
JsonValue seconds(Seconds value) { return number(value / Seconds{1}); }

JsonValue checkpoint_json(const JobResult& result) {
  const Job& job = result.job;
  JsonValue json = empty_object();
  json.set("bytes", number(job.checkpoint / Bytes{1}));
  json.set("stall_s", seconds(to_seconds(job.model.stall)));
  json.set("safe_after_s", seconds(to_seconds(job.model.stall + job.model.write)));
  json.set("read_s", seconds(to_seconds(job.model.read)));
  json.set("every_steps", count(job.model.checkpoint_every));
  json.set("every_s", seconds(job.step_time * static_cast<double>(job.model.checkpoint_every)));
  if (result.young) json.set("young_s", seconds(*result.young));
  if (result.daly) json.set("daly_s", seconds(*result.daly));
  if (!result.intervals) return json;
  json.set("best_s", seconds(job.step_time * result.intervals->best_steps));
  json.set("curve", array_of(result.intervals->points, [&](const IntervalPoint& point) {
             JsonValue entry = empty_object();
             entry.set("every_s", seconds(job.step_time * static_cast<double>(point.steps)));
             entry.set("mean_s", number(point.mean_seconds));
             return entry;
           }));
  return json;
}

JsonValue failures_json(const JobResult& result) {
  JsonValue json = empty_object(), parts = empty_object();
  for (std::size_t i = 0; i < num_failing_parts; ++i)
    parts.set(name_of(static_cast<FailingPart>(i)), number(result.mean_failures[i]));
  json.set("count", spread_json(result.failures));
  json.set("mean_by_part", std::move(parts));
  if (result.mtbf) json.set("mean_time_between_s", seconds(*result.mtbf));
  return json;
}

JsonValue assumptions_json(const std::vector<Assumption>& assumptions) {
  return array_of(assumptions, [&](const Assumption& each) {
    JsonValue entry = empty_object();
    entry.set("what", JsonValue(each.what));
    entry.set("value", JsonValue(each.value));
    entry.set("note", JsonValue(each.note));
    entry.set("evidence",
              JsonValue(std::string(each.evidence == Evidence::measured ? "measured" : "assumed")));
    return entry;
  });
}

}  // namespace

JsonValue spread_json(const Spread& spread) {
  JsonValue json = empty_object();
  json.set("median", number(spread.median));
  json.set("p5", number(spread.low));
  json.set("p95", number(spread.high));
  return json;
}

std::string job_json(const JobResult& result) {
  const Job& job = result.job;
  JsonValue json = empty_object();
  json.set("schema", JsonValue(std::string("windtunnel/job-v1")));
  json.set("name", JsonValue(result.name));
  json.set("version", JsonValue(std::string(WINDTUNNEL_VERSION)));
  json.set("scenario_hash", JsonValue(result.scenario_hash));
  json.set("seed", seed_value(result.options.seed));
  json.set("draws", count(static_cast<std::int64_t>(result.options.draws)));
  json.set("gpus", count(job.gpus));
  json.set("plan", JsonValue(result.plan));
  json.set("step_s", seconds(job.step_time));
  json.set("steps", count(job.model.steps));
  json.set("tokens", number(job.tokens_per_step * static_cast<double>(job.model.steps)));
  json.set("days", spread_json(result.days));
  if (result.enough_spares) {
    JsonValue spares = empty_object();
    spares.set("spare_nodes", count(result.enough_spares->nodes));
    spares.set("median_days", number(result.enough_spares->median_days));
    json.set("with_enough_spares", std::move(spares));
  }
  json.set("goodput", spread_json(result.goodput));
  JsonValue shares = empty_object();
  for (std::size_t i = 0; i < num_spent; ++i)
    shares.set(name_of(static_cast<Spent>(i)), number(result.mean_shares[i]));
  json.set("mean_shares", std::move(shares));
  json.set("failures", failures_json(result));
  json.set("checkpoint", checkpoint_json(result));
  if (result.cost) {
    JsonValue cost = spread_json(*result.cost);
    cost.set("currency", JsonValue(job.block.price->currency));
    json.set("cost", std::move(cost));
  }
  if (result.energy_mwh) json.set("energy_mwh", spread_json(*result.energy_mwh));
  if (result.tonnes_co2) json.set("tonnes_co2", spread_json(*result.tonnes_co2));
  json.set("assumptions", assumptions_json(job.assumptions));
  return pretty_text(json);
}

std::string job_csv(const JobResult& result) {
  std::string text = "draw,days";
  for (std::size_t i = 0; i < num_spent; ++i)
    text += std::string(",") + name_of(static_cast<Spent>(i)) + "_ns";
  text += ",total_ns";
  for (std::size_t i = 0; i < num_failing_parts; ++i)
    text += std::string(",failures_") + name_of(static_cast<FailingPart>(i));
  text += ",checkpoints,cost,energy_mwh\n";
  for (std::size_t i = 0; i < result.draws.size(); ++i) {
    const JobDraw& draw = result.draws[i];
    text += std::to_string(i) + "," + canonical_text(number(days_of(draw)));
    for (const Ticks ticks : draw.spent) text += "," + std::to_string(ticks);
    text += "," + std::to_string(draw.total);
    for (const std::int64_t failures : draw.failures) text += "," + std::to_string(failures);
    text += "," + std::to_string(draw.checkpoints) + ",";
    if (result.cost) text += canonical_text(number(cost_of(result.job, draw)));
    text += ",";
    if (result.energy_mwh) text += canonical_text(number(energy_of(result.job, draw)));
    text += "\n";
  }
  return text;
}

}  // namespace windtunnel
