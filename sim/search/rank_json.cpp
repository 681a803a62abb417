#include "search/rank_json.hpp"

#include <cmath>
#include <utility>

#include "plan/plan_check.hpp"
#include "report/json_object.hpp"
#include "report/report_json.hpp"
#include "report/report_words.hpp"
#include "scenario/key_table.hpp"
#include "search/launch_arguments.hpp"
#include "search/plan_explanation.hpp"

namespace windtunnel {
namespace {

/// Value of a key of plans: a number, a truth value or a word.
JsonValue plan_value(const Key& key, int value) {
  if (key.value.kind == KeyValue::Kind::whole_number) return json_of(value);
  return key.value.kind == KeyValue::Kind::flag ? JsonValue(value == 1)
                                                : JsonValue(text_of(key, value));
}

/// Every key of the block that the plan keeps.
JsonValue block_value(const std::string& block, const PlanChoice& choice) {
  JsonValue object = empty_object();
  for (const Key& key : key_table())
    if (key.pointer.starts_with(block) && key.value.kind != KeyValue::Kind::other &&
        key.name() != "placement")
      object.set(key.name(), key.pointer == plan_keys::schedule
                                 ? JsonValue(choice.parallel.schedule->name)
                                 : plan_value(key, key.value.get(choice)));
  return object;
}

JsonValue parallel_value(const PlanChoice& choice) {
  JsonValue object = block_value("/parallel/", choice);
  if (const std::vector<int>& layers = choice.parallel.stage_layers; !layers.empty())
    object.set("stage_layers", array_of(layers, json_of<int>));
  return object;
}

JsonValue training_value(const PlanChoice& choice) {
  JsonValue object = block_value("/training/", choice);
  if (choice.training.recompute != Recompute::selective) return object;
  JsonValue::Array names;
  for (const RecomputedModule module : RecomputedModules::all)
    if (choice.training.recompute_modules.has(module)) names.push_back(json_of(name_of(module)));
  object.set("recompute_modules", JsonValue(std::move(names)));
  return object;
}

/// "megatron", or "node:gpu" by rank.
JsonValue placement_value(const Scenario& base, const Parallel& parallel) {
  if (parallel.placement.empty()) return json_of("megatron");
  return array_of(parallel.placement, [gpus = base.plan.gpus_per_node](int place) {
    return std::to_string(place / gpus) + ":" + std::to_string(place % gpus);
  });
}

JsonValue plan_value(const Scenario& base, const RankedPlan& plan, std::size_t rank) {
  return object_of({{"rank", rank},
                    {"plan", detail::plan_text(plan.choice.training, plan.choice.parallel)},
                    {"parallel", parallel_value(plan.choice)},
                    {"training", training_value(plan.choice)},
                    {"microbatches", plan.microbatches},
                    {"iteration_time_s", plan.time},
                    {"lower_bound_s", plan.bound},
                    {"samples_per_s", plan.choice.training.global_batch / plan.time.value()},
                    {"memory_max_bytes", plan.memory_max.value()},
                    {"memory_verdict", name_of(plan.memory_verdict)},
                    {"placement", placement_value(base, plan.choice.parallel)},
                    {"placement_note", only_if(!plan.placement_note.empty(), plan.placement_note)},
                    {"method", name_of(plan.method)},
                    {"breakdown_s", only_if(plan.method == RankMethod::simulated,
                                            breakdown_value(plan.breakdown))}});
}

JsonValue memory_value(const MemoryCheck& memory) {
  return object_of({{"stage", memory.worst.stage.index()},
                    {"required_bytes", memory.worst.required.value()},
                    {"margin_bytes", (memory.with_margin - memory.worst.required).value()},
                    {"usable_bytes", memory.worst.usable.value()},
                    {"fits", memory.fits}});
}

JsonValue rejection_value(const PlanRejection& rejection) {
  return object_of({{"at", rejection.key},
                    {"why", rejection.message},
                    {"suggestion", only_if(!rejection.suggestion.empty(), rejection.suggestion)}});
}

}  // namespace

std::string rank_json(const Scenario& base, const RankResult& result) {
  JsonValue searched = empty_object(), fixed = empty_object();
  for (const auto& tried : tried_keys(base, result.space)) {
    const auto value = [&](int each) { return plan_value(*tried.key, each); };
    if (tried.is_searched())
      searched.set(tried.key->name(), array_of(tried.values, value));
    else if (!tried.values.empty())
      fixed.set(tried.key->name(), value(tried.values.front()));
  }
  const bool is_any = !result.plans.empty(), by_time = result.objective == Objective::time;
  JsonValue::Array plans;
  for (const RankedPlan& plan : result.plans) {
    plans.push_back(plan_value(base, plan, plans.size() + 1));
    if (!by_time) plans.back().set(name_of(result.objective), json_of(std::abs(plan.penalty)));
  }
  return pretty_text(object_of({{"schema", "windtunnel/rank-v1"},
                                {"name", base.name},
                                {"seed", base.seed},
                                {"considered", result.considered},
                                {"rejected", object_of({{"shape", result.rejected_shape},
                                                        {"memory", result.rejected_memory}})},
                                {"simulated", result.simulated},
                                {"searched", searched},
                                {"fixed", fixed},
                                {"lower_bound_s", only_if(is_any, result.lower_bound)},
                                {"gap", only_if(is_any, result.gap)},
                                {"proven", only_if(is_any, result.table_is_proven)},
                                {"objective", only_if(!by_time, name_of(result.objective))},
                                {"plans", JsonValue(std::move(plans))}})) +
         "\n";
}

std::string explanation_json(const Scenario& base, const PlanExplanation& explanation) {
  const auto& [choice, shape, memory, simulated, best] = explanation;
  JsonValue object =
      object_of({{"schema", "windtunnel/rank-why-v1"},
                 {"name", base.name},
                 {"parallel", parallel_value(choice)},
                 {"training", training_value(choice)},
                 {"verdict", !shape.empty()  ? "shape"
                             : !memory->fits ? "memory"
                                             : "legal"},
                 {"shape", only_if(!shape.empty(), array_of(shape, rejection_value))}});
  if (memory) object.set("memory", memory_value(*memory));
  if (simulated) object.set("iteration_time_s", json_of(simulated->time));
  if (best) object.set("best", plan_value(base, *best, 1));
  return pretty_text(object) + "\n";
}

std::string launch_json(const Scenario& base, const RankedPlan& plan, const Plan& laid_out) {
  const LaunchArguments launch = megatron_arguments(laid_out);
  const auto place = [](const GpuPlace& each) {
    return std::to_string(each.node.index()) + ":" + std::to_string(each.gpu);
  };
  return pretty_text(object_of({{"schema", "windtunnel/launch-v1"},
                                {"name", base.name},
                                {"plan", plan_value(base, plan, 1)},
                                {"arguments", array_of(launch.arguments)},
                                {"notes", array_of(launch.notes)},
                                {"host_map", array_of(laid_out.places, place)}})) +
         "\n";
}

}  // namespace windtunnel
