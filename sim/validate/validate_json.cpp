#include "validate/validate_json.hpp"

#include <cstdint>
#include <utility>

#include "core/json_value.hpp"

namespace windtunnel {
namespace {

JsonValue count(std::size_t number) { return JsonValue(static_cast<std::int64_t>(number)); }
JsonValue number(double value) { return JsonValue(value); }
JsonValue object() { return JsonValue(JsonValue::Object{}); }

JsonValue skipped_json(const std::vector<SkippedPoint>& skipped) {
  JsonValue::Array list;
  for (const SkippedPoint& point : skipped) {
    JsonValue entry = object();
    entry.set("id", JsonValue(point.id));
    entry.set("why", JsonValue(point.why));
    list.push_back(std::move(entry));
  }
  return JsonValue(std::move(list));
}

void add_scores(JsonValue& json, const Score& score) {
  json.set("mape", number(score.mape));
  json.set("median_ape", number(score.median_ape));
  json.set("p90_ape", number(score.p90_ape));
  json.set("worst_ape", number(score.worst_ape));
  json.set("bias", number(score.bias));
}

JsonValue without_largest_json(const std::vector<Comparison>& comparisons) {
  const std::size_t left_out = num_largest(comparisons.size());
  JsonValue json = object();
  json.set("left_out", count(left_out));
  add_scores(json, score_without_largest(comparisons, left_out));
  return json;
}

void add_groups(JsonValue& json, const std::vector<Comparison>& comparisons) {
  JsonValue groups = object(), taus = object(), regrets = object();
  for (const auto& [name, members] : by_group(comparisons)) {
    JsonValue group = object();
    group.set("scored", count(members.size()));
    add_scores(group, score(members));
    groups.set(name, std::move(group));
    if (const auto tau = kendall_tau(members)) taus.set(name, number(*tau));
    if (members.size() > 1) regrets.set(name, number(top1_regret(members)));
  }
  json.set("groups", std::move(groups));
  json.set("kendall_tau", std::move(taus));
  json.set("top1_regret", std::move(regrets));
}

JsonValue set_json(const ValidatedSet& set) {
  JsonValue json = object();
  json.set("set", JsonValue(set.name));
  json.set("points", count(set.num_points));
  json.set("scored", count(set.comparisons.size()));
  json.set("skipped", skipped_json(set.skipped));
  if (set.comparisons.empty()) return json;
  add_scores(json, score(set.comparisons));
  json.set("naive_mape", number(naive_mape(set.comparisons)));
  json.set("without_largest", without_largest_json(set.comparisons));
  add_groups(json, set.comparisons);
  return json;
}

JsonValue point_json(const ValidatedSet& set, const Comparison& comparison) {
  JsonValue json = object();
  json.set("set", JsonValue(set.name));
  json.set("id", JsonValue(comparison.id));
  json.set("group", JsonValue(comparison.group));
  json.set("measured_s", number(comparison.measured.value()));
  json.set("predicted_s", number(comparison.predicted.value()));
  json.set("error", number(comparison.error()));
  return json;
}

}  // namespace

std::string validation_json(const std::vector<ValidatedSet>& sets) {
  JsonValue::Array list, points;
  for (const ValidatedSet& set : sets) {
    list.push_back(set_json(set));
    for (const Comparison& comparison : set.comparisons)
      points.push_back(point_json(set, comparison));
  }
  JsonValue json = object();
  json.set("schema", JsonValue(std::string("windtunnel/validation-v1")));
  json.set("sets", JsonValue(std::move(list)));
  json.set("points", JsonValue(std::move(points)));
  return pretty_text(json) + "\n";
}

}  // namespace windtunnel
