#include "validate/validate_json.hpp"

#include <cstdint>
#include <utility>

#include "core/json_build.hpp"
#include "core/json_value.hpp"
#include "validate/metrics.hpp"

namespace windtunnel {
namespace {

JsonValue count(std::size_t number) { return JsonValue(static_cast<std::int64_t>(number)); }
JsonValue number(double value) { return JsonValue(value); }
JsonValue skipped_json(const std::vector<SkippedPoint>& skipped) {
  return array_of(skipped, [&](const SkippedPoint& point) {
    JsonValue entry = empty_object();
    entry.set("id", JsonValue(point.id));
    entry.set("why", JsonValue(point.why));
    return entry;
  });
}

void add_scores(JsonValue& json, const Score& score) {
  json.set("mape", number(score.mape));
  json.set("median_ape", number(score.median_ape));
  json.set("p90_ape", number(score.p90_ape));
  json.set("worst_ape", number(score.worst_ape));
  json.set("bias", number(score.bias));
}

JsonValue without_largest_json(const std::vector<ScoredRow>& comparisons) {
  const std::size_t left_out = num_largest(comparisons.size());
  JsonValue json = empty_object();
  json.set("left_out", count(left_out));
  add_scores(json, score_without_largest(comparisons, left_out));
  return json;
}

void add_groups(JsonValue& json, const std::vector<ScoredRow>& comparisons) {
  JsonValue groups = empty_object(), taus = empty_object(), rhos = empty_object(),
            regrets = empty_object();
  for (const auto& [name, members] : by_group(comparisons)) {
    JsonValue group = empty_object();
    group.set("scored", count(members.size()));
    add_scores(group, score(members));
    groups.set(name, std::move(group));
    if (const auto tau = kendall_tau(members)) taus.set(name, number(*tau));
    if (const auto rho = spearman_rho(members)) rhos.set(name, number(*rho));
    if (members.size() > 1) regrets.set(name, number(top1_regret(members)));
  }
  json.set("groups", std::move(groups));
  json.set("kendall_tau", std::move(taus));
  json.set("spearman_rho", std::move(rhos));
  json.set("top1_regret", std::move(regrets));
}

void add_time_scores(JsonValue& json, const ValidatedSet& set) {
  add_scores(json, score(set.comparisons));
  json.set("naive_mape", number(naive_mape(set.comparisons)));
  json.set("without_largest", without_largest_json(set.comparisons));
  add_groups(json, set.comparisons);
  if (const auto share = interval_coverage(set.comparisons))
    json.set("interval_coverage", number(*share));
}

void add_memory_scores(JsonValue& json, const ValidatedSet& set) {
  for (const char* name :
       {"memory_mape", "memory_allocated_mape", "memory_reserved_mape", "memory_smi_mape"})
    if (const auto value = find_metric(name)->of(set)) json.set(name, number(*value));
  if (set.kind != MeasurementKind::iteration) return;
  JsonValue verdicts = empty_object();
  verdicts.set("caught", count(set.capacity.caught.size()));
  verdicts.set("missed", count(set.capacity.missed.size()));
  verdicts.set("refused_that_ran", count(set.capacity.refused_that_ran.size()));
  verdicts.set("ran", count(set.capacity.ran.size()));
  json.set("out_of_memory", std::move(verdicts));
}

void add_timer_scores(JsonValue& json, const ValidatedSet& set) {
  if (set.timers.empty()) return;
  JsonValue timers = empty_object();
  for (const auto& [name, errors] : timer_errors(set.timers))
    timers.set(name, number(*mean_absolute_error(errors)));
  json.set("timers_mape", std::move(timers));
}

JsonValue set_json(const ValidatedSet& set) {
  JsonValue json = empty_object();
  json.set("set", JsonValue(set.name));
  json.set("points", count(set.num_points));
  json.set("scored", count(set.comparisons.size()));
  json.set("skipped", skipped_json(set.skipped));
  const auto list = [](const auto& texts) {
    return JsonValue(JsonValue::Array(texts.begin(), texts.end()));
  };
  json.set("fitted_on_this_set", list(set.fitted_numbers));
  json.set("never_fitted", JsonValue(set.never_fitted));
  if (!set.overrides.empty()) json.set("overrides", list(set.overrides));
  if (!set.comparisons.empty()) add_time_scores(json, set);
  if (set.has_scores()) add_memory_scores(json, set);
  add_timer_scores(json, set);
  return json;
}

JsonValue point_json(const ValidatedSet& set, const ScoredRow& comparison) {
  JsonValue json = empty_object();
  json.set("set", JsonValue(set.name));
  json.set("id", JsonValue(comparison.id));
  json.set("group", JsonValue(comparison.group));
  json.set("measured_s", number(comparison.measured.value()));
  json.set("predicted_s", number(comparison.predicted.value()));
  json.set("error", number(comparison.error()));
  if (comparison.interval)
    json.set("interval_s",
             JsonValue(JsonValue::Array{number(comparison.interval->first.value()),
                                        number(comparison.interval->second.value())}));
  return json;
}

JsonValue memory_json(const ValidatedSet& set, const MemoryComparison& comparison) {
  JsonValue json = empty_object();
  json.set("set", JsonValue(set.name));
  json.set("id", JsonValue(comparison.id));
  json.set("kind", JsonValue(std::string(name_of(comparison.kind))));
  json.set("ranks", JsonValue(comparison.ranks));
  json.set("measured_bytes", number(comparison.measured.value()));
  json.set("predicted_bytes", number(comparison.predicted.value()));
  json.set("error", number(comparison.error()));
  return json;
}

JsonValue timer_json(const ValidatedSet& set, const TimerComparison& comparison) {
  JsonValue json = empty_object();
  json.set("set", JsonValue(set.name));
  json.set("id", JsonValue(comparison.id));
  json.set("timer", JsonValue(comparison.name));
  json.set("measured_s", number(comparison.measured.value()));
  json.set("predicted_s", number(comparison.predicted.value()));
  json.set("error", number(comparison.error()));
  return json;
}

}  // namespace

std::string validation_json(const std::vector<ValidatedSet>& sets) {
  JsonValue::Array list, points, memory, timers;
  for (const ValidatedSet& set : sets) {
    list.push_back(set_json(set));
    for (const ScoredRow& comparison : set.comparisons)
      points.push_back(point_json(set, comparison));
    for (const MemoryComparison& comparison : set.memory)
      memory.push_back(memory_json(set, comparison));
    for (const TimerComparison& comparison : set.timers)
      timers.push_back(timer_json(set, comparison));
  }
  JsonValue json = empty_object();
  json.set("schema", JsonValue(std::string("windtunnel/validation-v1")));
  if (const std::vector<ScoredRow> all = iterations_of(sets); !all.empty()) {
    JsonValue iterations = empty_object();
    iterations.set("scored", count(all.size()));
    add_scores(iterations, score(all));
    json.set("iterations", std::move(iterations));
  }
  json.set("sets", JsonValue(std::move(list)));
  json.set("points", JsonValue(std::move(points)));
  json.set("memory", JsonValue(std::move(memory)));
  json.set("timers", JsonValue(std::move(timers)));
  return pretty_text(json) + "\n";
}

}  // namespace windtunnel
