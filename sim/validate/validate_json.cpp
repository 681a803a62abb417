#include <array>
#include <utility>

#include "core/json_build.hpp"
#include "report/json_object.hpp"
#include "validate/validation_report.hpp"

namespace windtunnel {
namespace {

JsonValue with_scores(JsonValue json, const Score& score) {
  add_members(json, {{"mape", score.mape},
                     {"median_ape", score.median_ape},
                     {"p90_ape", score.p90_ape},
                     {"worst_ape", score.worst_ape},
                     {"bias", score.bias}});
  return json;
}

void add_groups(JsonValue& json, const std::vector<ScoredRow>& comparisons) {
  JsonValue groups = empty_object(), taus = empty_object(), rhos = empty_object(),
            regrets = empty_object();
  for (const auto& [name, members] : by_group(comparisons)) {
    groups.set(name, with_scores(object_of({{"scored", members.size()}}), score(members)));
    add_members(taus, {{name, kendall_tau(members)}});
    add_members(rhos, {{name, spearman_rho(members)}});
    if (members.size() > 1) regrets.set(name, JsonValue(top1_regret(members)));
  }
  add_members(json, {{"groups", groups},
                     {"kendall_tau", taus},
                     {"spearman_rho", rhos},
                     {"top1_regret", regrets}});
}

void add_time_scores(JsonValue& json, const ValidatedSet& set) {
  const std::vector<ScoredRow>& rows = set.comparisons;
  const std::size_t left_out = num_largest(rows.size());
  json = with_scores(std::move(json), score(rows));
  add_members(json, {{"naive_mape", naive_mape(rows)},
                     {"without_largest", with_scores(object_of({{"left_out", left_out}}),
                                                     score_without_largest(rows, left_out))}});
  add_groups(json, rows);
  add_members(json, {{"interval_coverage", interval_coverage(rows)}});
  const OrderScore& orders = set.orders;
  if (orders.pairs > 0)
    json.set("orders", object_of({{"pairs", orders.pairs},
                                  {"covered", orders.covered},
                                  {"apart", orders.apart},
                                  {"right", orders.right},
                                  {"said", orders.said},
                                  {"said_right", orders.said_right}}));
}

void add_memory_scores(JsonValue& json, const ValidatedSet& set) {
  for (const char* name :
       {"memory_mape", "memory_allocated_mape", "memory_reserved_mape", "memory_smi_mape"})
    add_members(json, {{name, find_metric(name)->of(set)}});
  if (set.kind != MeasurementKind::iteration) return;
  json.set("out_of_memory", object_of({{"caught", set.capacity.caught.size()},
                                       {"missed", set.capacity.missed.size()},
                                       {"refused_that_ran", set.capacity.refused_that_ran.size()},
                                       {"ran", set.capacity.ran.size()}}));
}

JsonValue set_json(const ValidatedSet& set) {
  const auto skipped = [](const SkippedPoint& point) {
    return object_of({{"id", point.id}, {"why", point.why}});
  };
  JsonValue json =
      object_of({{"set", set.name},
                 {"points", set.num_points},
                 {"scored", set.comparisons.size()},
                 {"skipped", array_of(set.skipped, skipped)},
                 {"fitted_on_this_set", array_of(set.fitted_numbers)},
                 {"never_fitted", set.never_fitted},
                 {"overrides", only_if(!set.overrides.empty(), array_of(set.overrides))}});
  if (!set.comparisons.empty()) add_time_scores(json, set);
  if (set.has_scores()) add_memory_scores(json, set);
  if (!set.timers.empty())
    json.set("timers_mape", object_by_key(timer_errors(set.timers), [](const auto& errors) {
               return *mean_absolute_error(errors);
             }));
  return json;
}

JsonValue point_json(const ValidatedSet& set, const ScoredRow& row) {
  std::optional<double> outside;
  if (row.judged) outside = share_outside_kernels(row.judged->breakdown);
  return object_of({{"set", set.name},
                    {"id", row.id},
                    {"group", row.group},
                    {"measured_s", row.measured},
                    {"predicted_s", row.predicted},
                    {"error", row.error()},
                    {"outside_kernels", outside},
                    {"interval_s", row.interval}});
}

JsonValue memory_json(const ValidatedSet& set, const MemoryComparison& comparison) {
  return object_of({{"set", set.name},
                    {"id", comparison.id},
                    {"kind", dashed_name(comparison.kind)},
                    {"ranks", comparison.ranks},
                    {"measured_bytes", comparison.measured.value()},
                    {"predicted_bytes", comparison.predicted.value()},
                    {"error", comparison.error()}});
}

JsonValue timer_json(const ValidatedSet& set, const ScoredRow& timer) {
  return object_of({{"set", set.name},
                    {"id", timer.id},
                    {"timer", timer.group},
                    {"measured_s", timer.measured},
                    {"predicted_s", timer.predicted},
                    {"error", timer.error()}});
}

}  // namespace

JsonValue validation_value(const std::vector<ValidatedSet>& sets) {
  JsonValue::Array points, memory, timers;
  for (const ValidatedSet& set : sets) {
    for (const ScoredRow& comparison : set.comparisons)
      points.push_back(point_json(set, comparison));
    for (const MemoryComparison& comparison : set.memory)
      memory.push_back(memory_json(set, comparison));
    for (const ScoredRow& timer : set.timers) timers.push_back(timer_json(set, timer));
  }
  std::optional<JsonValue> iterations;
  if (const std::vector<ScoredRow> all = iterations_of(sets); !all.empty())
    iterations = with_scores(object_of({{"scored", all.size()}}), score(all));
  return object_of({{"schema", "windtunnel/validation-v1"},
                    {"iterations", iterations},
                    {"sets", array_of(sets, set_json)},
                    {"points", JsonValue(std::move(points))},
                    {"memory", JsonValue(std::move(memory))},
                    {"timers", JsonValue(std::move(timers))}});
}

std::string validation_json(const std::vector<ValidatedSet>& sets) {
  return pretty_text(validation_value(sets)) + "\n";
}

}  // namespace windtunnel
