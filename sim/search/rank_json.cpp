#include "search/rank_json.hpp"

#include <cmath>
#include <utility>

#include "core/json_build.hpp"
#include "core/json_value.hpp"
#include "plan/plan_check.hpp"
#include "report/report_words.hpp"
#include "report/seed_value.hpp"
#include "scenario/key_table.hpp"
#include "search/launch_arguments.hpp"
#include "search/plan_explanation.hpp"

namespace windtunnel {
namespace {

JsonValue count(std::size_t number) { return JsonValue(static_cast<std::int64_t>(number)); }
JsonValue whole(int number) { return JsonValue(std::int64_t{number}); }
JsonValue word(const char* text) { return JsonValue(std::string(text)); }

JsonValue value_json(const Key& key, int value) {
  if (key.value.kind == KeyValue::Kind::whole_number) return whole(value);
  if (key.value.kind == KeyValue::Kind::flag) return JsonValue(value == 1);
  return JsonValue(text_of(key, value));
}

/// Every key of the block that the plan keeps.
JsonValue block_json(const std::string& block, const PlanChoice& choice) {
  JsonValue json = empty_object();
  for (const Key& key : key_table())
    if (key.pointer.starts_with(block) && key.value.kind != KeyValue::Kind::other &&
        key.name() != "placement")
      json.set(key.name(), key.pointer == plan_keys::schedule
                               ? JsonValue(choice.parallel.schedule->name)
                               : value_json(key, key.value.get(choice)));
  return json;
}

JsonValue parallel_json(const PlanChoice& choice) {
  JsonValue json = block_json("/parallel/", choice);
  if (const std::vector<int>& layers = choice.parallel.stage_layers; !layers.empty())
    json.set("stage_layers", array_of(layers, [](int number) { return std::int64_t{number}; }));
  return json;
}

JsonValue training_json(const PlanChoice& choice) {
  JsonValue json = block_json("/training/", choice);
  const RecomputedModules& modules = choice.training.recompute_modules;
  if (choice.training.recompute != Recompute::selective) return json;
  JsonValue::Array names;
  for (const RecomputedModule module : RecomputedModules::all)
    if (modules.has(module)) names.push_back(word(name_of(module)));
  json.set("recompute_modules", JsonValue(std::move(names)));
  return json;
}

/// "megatron", or "node:gpu" by rank.
JsonValue placement_json(const Scenario& base, const Parallel& parallel) {
  if (parallel.placement.empty()) return word("megatron");
  const int gpus = base.plan.gpus_per_node;
  JsonValue::Array places;
  for (const int place : parallel.placement)
    places.emplace_back(std::to_string(place / gpus) + ":" + std::to_string(place % gpus));
  return JsonValue(std::move(places));
}

JsonValue plan_json(const Scenario& base, const RankedPlan& plan, std::size_t rank) {
  JsonValue json = empty_object();
  json.set("rank", count(rank));
  json.set("plan", JsonValue(detail::plan_text(plan.choice.training, plan.choice.parallel)));
  json.set("parallel", parallel_json(plan.choice));
  json.set("training", training_json(plan.choice));
  json.set("microbatches", whole(plan.microbatches));
  json.set("iteration_time_s", JsonValue(plan.time.value()));
  json.set("lower_bound_s", JsonValue(plan.bound.value()));
  json.set("samples_per_s", JsonValue(plan.choice.training.global_batch / plan.time.value()));
  json.set("memory_max_bytes", JsonValue(plan.memory_max.value()));
  json.set("memory_verdict", word(name_of(plan.memory_verdict)));
  json.set("placement", placement_json(base, plan.choice.parallel));
  if (!plan.placement_note.empty()) json.set("placement_note", JsonValue(plan.placement_note));
  json.set("method", word(name_of(plan.method)));
  if (plan.method == RankMethod::simulated) {
    JsonValue breakdown = empty_object();
    for (int i = 0; i < num_lines; ++i) {
      const auto line = static_cast<Line>(i);
      if (is_always_written(line) || plan.breakdown.of(line) > Seconds{0})
        breakdown.set(name_of(line), JsonValue(plan.breakdown.of(line).value()));
    }
    json.set("breakdown_s", std::move(breakdown));
  }
  return json;
}

JsonValue memory_json(const MemoryCheck& memory) {
  JsonValue json = empty_object();
  json.set("stage", count(memory.worst.stage.index()));
  json.set("required_bytes", JsonValue(memory.worst.required.value()));
  json.set("margin_bytes", JsonValue((memory.with_margin - memory.worst.required).value()));
  json.set("usable_bytes", JsonValue(memory.worst.usable.value()));
  json.set("fits", JsonValue(memory.fits));
  return json;
}

JsonValue shape_json(const std::vector<PlanRejection>& rejections) {
  return array_of(rejections, [&](const PlanRejection& rejection) {
    JsonValue entry = empty_object();
    entry.set("at", JsonValue(rejection.key));
    entry.set("why", JsonValue(rejection.message));
    if (!rejection.suggestion.empty()) entry.set("suggestion", JsonValue(rejection.suggestion));
    return entry;
  });
}

JsonValue searched_json(const std::vector<TriedKey>& tried) {
  JsonValue json = empty_object();
  for (const TriedKey& each : tried)
    if (each.is_searched())
      json.set(each.key->name(),
               array_of(each.values, [&](int value) { return value_json(*each.key, value); }));
  return json;
}

JsonValue fixed_json(const std::vector<TriedKey>& tried) {
  JsonValue json = empty_object();
  for (const TriedKey& each : tried)
    if (!each.is_searched() && !each.values.empty())
      json.set(each.key->name(), value_json(*each.key, each.values.front()));
  return json;
}

}  // namespace

std::string rank_json(const Scenario& base, const RankResult& result) {
  JsonValue json = empty_object();
  json.set("schema", word("windtunnel/rank-v1"));
  json.set("name", JsonValue(base.name));
  json.set("seed", seed_value(base.seed));
  json.set("considered", count(result.considered));
  JsonValue rejected = empty_object();
  rejected.set("shape", count(result.rejected_shape));
  rejected.set("memory", count(result.rejected_memory));
  json.set("rejected", std::move(rejected));
  json.set("simulated", count(result.simulated));
  const std::vector<TriedKey> tried = tried_keys(base, result.space);
  json.set("searched", searched_json(tried));
  json.set("fixed", fixed_json(tried));
  if (!result.plans.empty()) {
    json.set("lower_bound_s", JsonValue(result.lower_bound.value()));
    json.set("gap", JsonValue(result.gap));
    json.set("proven", JsonValue(result.table_is_proven));
  }
  if (result.objective != Objective::time) json.set("objective", word(name_of(result.objective)));
  JsonValue::Array plans;
  for (const RankedPlan& plan : result.plans) {
    JsonValue entry = plan_json(base, plan, plans.size() + 1);
    if (result.objective != Objective::time)
      entry.set(name_of(result.objective), JsonValue(std::abs(plan.penalty)));
    plans.push_back(std::move(entry));
  }
  json.set("plans", JsonValue(std::move(plans)));
  return pretty_text(json) + "\n";
}

std::string explanation_json(const Scenario& base, const PlanExplanation& explanation) {
  JsonValue json = empty_object();
  json.set("schema", word("windtunnel/rank-why-v1"));
  json.set("name", JsonValue(base.name));
  json.set("parallel", parallel_json(explanation.choice));
  json.set("training", training_json(explanation.choice));
  json.set("verdict", word(!explanation.shape.empty()  ? "shape"
                           : !explanation.memory->fits ? "memory"
                                                       : "legal"));
  if (!explanation.shape.empty()) json.set("shape", shape_json(explanation.shape));
  if (explanation.memory) json.set("memory", memory_json(*explanation.memory));
  if (explanation.simulated)
    json.set("iteration_time_s", JsonValue(explanation.simulated->time.value()));
  if (explanation.best) json.set("best", plan_json(base, *explanation.best, 1));
  return pretty_text(json) + "\n";
}

std::string launch_json(const Scenario& base, const RankedPlan& plan, const Plan& laid_out) {
  const LaunchArguments launch = megatron_arguments(laid_out);
  const auto list = [](const std::vector<std::string>& texts) {
    JsonValue::Array values;
    for (const std::string& text : texts) values.emplace_back(text);
    return JsonValue(std::move(values));
  };
  JsonValue::Array hosts;
  for (const GpuPlace& place : laid_out.places)
    hosts.emplace_back(std::to_string(place.node.index()) + ":" + std::to_string(place.gpu));
  JsonValue json = empty_object();
  json.set("schema", word("windtunnel/launch-v1"));
  json.set("name", JsonValue(base.name));
  json.set("plan", plan_json(base, plan, 1));
  json.set("arguments", list(launch.arguments));
  json.set("notes", list(launch.notes));
  json.set("host_map", JsonValue(std::move(hosts)));
  return pretty_text(json) + "\n";
}

}  // namespace windtunnel
