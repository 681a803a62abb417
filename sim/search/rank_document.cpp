#include "search/rank_document.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/count_text.hpp"
#include "core/text_list.hpp"
#include "plan/compression.hpp"
#include "plan/plan_check.hpp"
#include "report/figures.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_json.hpp"
#include "report/report_view.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"
#include "scenario/scenario.hpp"
#include "schedule/in_flight.hpp"
#include "search/launch_arguments.hpp"
#include "search/lower_bound.hpp"
#include "simulate/memory_inputs.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using document::figure;
using document::Verdict;
using document::Words;
using html::text_of_bytes;
using html::text_of_time;

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
  if (choice.training.recompute == Recompute::none) return object;
  if (const RecomputedLayers& layers = choice.training.recompute_layers; !layers.are_all()) {
    JsonValue of{JsonValue::Object{}};
    of.set(layers.first > 0 ? "first" : "every", json_of(std::max(layers.first, layers.every)));
    object.set("recompute_layers", std::move(of));
  }
  if (choice.training.recompute != Recompute::selective) return object;
  JsonValue::Array names;
  for (const RecomputedModule module : RecomputedModules::all)
    if (choice.training.recompute_modules.has(module)) names.push_back(json_of(name_of(module)));
  object.set("recompute_modules", JsonValue(std::move(names)));
  return object;
}

/// "node:gpu", as the cluster counts nodes.
std::string place_text(const Scenario& base, const GpuPlace& place) {
  return std::to_string(base.platform.in_cluster(place.node).index()) + ":" +
         std::to_string(place.gpu);
}

/// The plan, with its number in the table, if it has one.
JsonValue plan_value(const Scenario& base, const RankedPlan& plan, std::size_t rank) {
  const auto text_at = [&](int place) {
    const int gpus = base.plan.gpus_per_node;
    return place_text(base, {NodeId(place / gpus), place % gpus});
  };
  const std::vector<int>& places = plan.choice.parallel.placement;
  return object_of(
      {{"rank", only_if(rank > 0, rank)},
       {"plan", detail::plan_text(plan.choice.training, plan.choice.parallel)},
       {"parallel", parallel_value(plan.choice)},
       {"training", training_value(plan.choice)},
       {"microbatches", plan.microbatches},
       {"iteration_time_s", plan.time},
       {"iteration_time_interval_s", plan.interval},
       {"place", only_if(plan.place > 0, plan.place)},
       {"indistinguishable_from_best", only_if(plan.place > 0, plan.place == 1)},
       {"against_best",
        plan.against_best ? std::optional(ordering_value(*plan.against_best)) : std::nullopt},
       {"lower_bound_s", plan.bound},
       {"samples_per_s", plan.choice.training.global_batch / plan.time.value()},
       {"memory_max_bytes", plan.memory_max.value()},
       {"memory_verdict", name_of(plan.memory_verdict)},
       {"placement", places.empty() ? json_of("megatron") : array_of(places, text_at)},
       {"placement_note", only_if(!plan.placement_note.empty(), plan.placement_note)},
       {"method", name_of(plan.method)},
       {"breakdown_s", only_if(plan.is_simulated(), breakdown_value(plan.breakdown))}});
}

/// The best plan that surely fits, and its number in the table, if it has one; null: none surely fits.
std::pair<const RankedPlan*, std::size_t> surest(const RankResult& result) {
  const auto found = std::ranges::find_if(result.plans, &RankedPlan::surely_fits);
  if (found != result.plans.end())
    return {&*found, static_cast<std::size_t>(found - result.plans.begin()) + 1};
  if (!result.surest_below) return {nullptr, 0};
  return {&*result.surest_below, result.plans.size() + 1};
}

/// The result with the best plan that surely fits as a last row, where the table lacks it.
RankResult with_surest(RankResult result) {
  if (result.surest_below) result.plans.push_back(*std::exchange(result.surest_below, {}));
  return result;
}

/// Where the first plan is not sure to fit: the best that is, or null.
std::optional<JsonValue> surest_value(const Scenario& base, const RankResult& result) {
  if (result.plans.empty() || result.plans.front().surely_fits()) return std::nullopt;
  const auto [plan, rank] = surest(result);
  if (plan == nullptr) return JsonValue();
  const RankedPlan& best = result.plans.front();
  JsonValue value = plan_value(base, *plan, rank);
  value.set("behind_best", json_of(result.objective == Objective::energy_per_token
                                       ? plan->penalty / best.penalty - 1
                                       : plan->time / best.time - 1));
  return value;
}

JsonValue rank_data(const Scenario& base, const RankResult& result) {
  JsonValue searched = empty_object(), fixed = empty_object();
  for (const auto& tried : tried_keys(base, result.space)) {
    const auto value = [&](int each) { return plan_value(*tried.key, each); };
    if (tried.is_searched())
      searched.set(tried.key->name(), array_of(tried.values, value));
    else if (!tried.values.empty())
      fixed.set(tried.key->name(), value(tried.values.front()));
  }
  if (result.space.balances_layers) fixed.set("stage_layers", json_of("balanced"));
  const JsonValue training = training_value({base.plan.training, {}});
  if (const JsonValue* layers = training.find("recompute_layers"))
    fixed.set("recompute_layers", *layers);
  std::optional<JsonValue> avoided;
  if (result.avoided)
    avoided = object_of({{"names", array_of(result.avoided->names)},
                         {"nodes", array_of(result.avoided->nodes, json_of<int>)},
                         {"iteration_time_with_nothing_avoided_s", result.avoided->best_of_all}});
  const bool is_any = !result.plans.empty(), by_time = result.objective == Objective::time;
  JsonValue::Array plans;
  for (const RankedPlan& plan : result.plans) {
    plans.push_back(plan_value(base, plan, plans.size() + 1));
    if (!by_time) plans.back().set(name_of(result.objective), json_of(std::abs(plan.penalty)));
  }
  return object_of({{"schema", "windtunnel/rank-v1"},
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
                    {"avoided", avoided},
                    {"warnings", only_if(!result.interval_warning.empty(),
                                         array_of(std::array{result.interval_warning}))},
                    {"best_sure_plan", surest_value(base, result)},
                    {"plans", JsonValue(std::move(plans))}});
}

std::string label_of(std::size_t index) { return std::to_string(index + 1); }

/// "1, 3 and 5 to 7": the labels of plans at these indices, in order.
std::string labels_of(const std::vector<std::size_t>& indices) {
  std::vector<std::string> runs;
  for (std::size_t first = 0, end = 0; first < indices.size(); first = end) {
    for (end = first + 1; end < indices.size() && indices[end] == indices[end - 1] + 1;) ++end;
    constexpr std::size_t many = 3;
    if (end - first >= many)
      runs.push_back(label_of(indices[first]) + " to " + label_of(indices[end - 1]));
    else
      for (std::size_t i = first; i < end; ++i) runs.push_back(label_of(indices[i]));
  }
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i)
    text += (i == 0 ? "" : i + 1 == runs.size() ? " and " : ", ") + runs[i];
  return text;
}

/// The plans of which `holds` is true, by index.
template <class Holds>
std::vector<std::size_t> plans_where(const RankResult& result, const Holds& holds) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < result.plans.size(); ++i)
    if (holds(result.plans[i])) indices.push_back(i);
  return indices;
}

/// The lines of the breakdown that take most, at least a twentieth each: "compute 84 %, pipeline bubble 9 %".
std::string what_takes_the_time(const RankedPlan& plan) {
  constexpr double least_share = 0.05;
  constexpr std::size_t most_lines = 2;
  if (!plan.is_simulated()) return "not simulated";
  std::vector<Line> lines(all_lines.begin(), all_lines.end());
  std::ranges::stable_sort(
      lines, [&](Line a, Line b) { return plan.breakdown.of(a) > plan.breakdown.of(b); });
  std::string text;
  for (std::size_t i = 0; i < most_lines; ++i) {
    const double share = plan.breakdown.of(lines[i]) / plan.time;
    if (i > 0 && share < least_share) break;
    text += (i > 0 ? ", " : "") + detail::with_spaces(name_of(lines[i])) + " " +
            fixed_text(100 * share, 0) + " %";
  }
  return text;
}

/// True if the plans of the table have the same value of the key.
bool agree_on(const Key& key, const std::vector<RankedPlan>& plans) {
  return std::ranges::all_of(plans, [&](const RankedPlan& plan) {
    return key.value.get(plan.choice) == key.value.get(plans.front().choice);
  });
}

/// True if schedules follow from the chunks: the interleaved one where there are several.
bool schedule_follows(const std::vector<RankedPlan>& plans) {
  return std::ranges::all_of(plans, [&](const RankedPlan& one) {
    return std::ranges::all_of(plans, [&](const RankedPlan& other) {
      const Parallel &a = one.choice.parallel, &b = other.choice.parallel;
      return (a.virtual_pipeline > 1) != (b.virtual_pipeline > 1) || a.schedule == b.schedule;
    });
  });
}

/// True if the key has no column since one line can speak for all plans.
bool is_said_once(const SearchKey& searched, const RankResult& result) {
  return !searched.varies_always && result.space.tries_everything &&
         agree_on(*searched.key, result.plans);
}

bool has_column(const SearchKey& searched, const RankResult& result) {
  const std::vector<int>& tried = result.space.of(searched.key->name());
  const bool is_derived = tried.empty() && !agree_on(*searched.key, result.plans);
  return searched.varies_always ||
         ((tried.size() > 1 || is_derived) && !is_said_once(searched, result));
}

bool any_interval(const RankResult& result) {
  return std::ranges::any_of(result.plans,
                             [](const RankedPlan& plan) { return plan.interval.has_value(); });
}

/// The interval of the time of the plan at `at`, where it has one.
Words interval_words(const JsonValue& data, const std::string& at) {
  const Words low = figure(data, at + "/iteration_time_interval_s/0", text_of_time);
  return low.empty()
             ? low
             : low + " to " + figure(data, at + "/iteration_time_interval_s/1", text_of_time);
}

/// Time of the plan at `at`, marked where it is only a lower bound.
Words time_words(const RankedPlan& plan, const JsonValue& data, const std::string& at) {
  return Words(plan.is_simulated() ? "" : "≥ ") +
         figure(data, at + "/iteration_time_s", text_of_time);
}

/// Memory of the fullest GPU, marked where whether it fits is not sure.
Words memory_words(const RankedPlan& plan, const JsonValue& data, const std::string& at) {
  return Words(plan.memory_verdict == MemoryVerdict::lower_bound ? "≥ " : "") +
         figure(data, at + "/memory_max_bytes", text_of_bytes) +
         Words(plan.memory_verdict == MemoryVerdict::at_risk ? " ~" : "");
}

document::Table plan_table(const RankResult& result, const JsonValue& data) {
  document::Table table{"", {{}}};
  table.rows.resize(result.plans.size() + 1);
  const std::size_t ranked = find_at(data, "/plans")->array().size();
  const auto add = [&](const char* column, const std::string& title, const auto& cell) {
    table.columns += column;
    table.rows.front().emplace_back(title);
    for (std::size_t i = 0; i < result.plans.size(); ++i)
      table.rows[i + 1].push_back(
          cell(i, i < ranked ? "/plans/" + std::to_string(i) : "/best_sure_plan"));
  };
  add("l", "#", [&](std::size_t i, const std::string&) { return Words(label_of(i)); });
  for (const SearchKey& searched : search_keys()) {
    if (!has_column(searched, result)) continue;
    const Key& key = *searched.key;
    const bool is_number = key.value.kind == KeyValue::Kind::whole_number,
               is_degree = key.name() == "tensor" || key.name() == "pipeline" ||
                           key.name() == "context" || key.name() == "micro_batch";
    // The number of replicas follows from the rest, and what all plans share tells none of them apart. Degrees and microbatch stay longest.
    const bool follows =
        key.name() == "data" || (key.name() == "schedule" && schedule_follows(result.plans));
    const std::string marks =
        std::string(is_number ? "r" : "l") + (follows                       ? "??"
                                              : agree_on(key, result.plans) ? "???"
                                              : is_degree                   ? ""
                                                                            : "?");
    add(marks.c_str(), key.label(), [&](std::size_t i, const std::string& at) {
      return Words(shown_text(key, key.value.get(result.plans[i].choice)),
                   is_number ? at + key.pointer : "");
    });
  }
  add("r", "time",
      [&](std::size_t i, const std::string& at) { return time_words(result.plans[i], data, at); });
  if (result.plans.size() > 1 && result.plans.front().place == 1)
    add("r?", "slower by", [&](std::size_t i, const std::string&) {
      const RankedPlan& plan = result.plans[i];
      if (i == 0 || plan.place == 0) return Words();
      return Words((plan.place == 1 ? "≈ " : "") +  // not known which of the two is faster
                   percent_text(plan.time / result.plans.front().time - 1));
    });
  if (any_interval(result))
    add("R", "90 % interval",
        [&](std::size_t, const std::string& at) { return interval_words(data, at); });
  add("r????", "samples/s", [&](std::size_t i, const std::string& at) {
    return Words(result.plans[i].is_simulated() ? "" : "≤ ") +
           figure(data, at + "/samples_per_s", throughput_text);
  });
  if (!is_always_shown(result.objective))
    add("r", result.objective_column.title, [&](std::size_t i, const std::string&) {
      return Words((result.plans[i].is_simulated() ? "" : "≥ ") +
                   number_text(result.objective_column, result.plans[i].penalty));
    });
  add("r", "memory", [&](std::size_t i, const std::string& at) {
    return memory_words(result.plans[i], data, at);
  });
  add("l?????", "what takes the time", [&](std::size_t i, const std::string&) {
    return Words(what_takes_the_time(result.plans[i]));
  });
  return table;
}

/// Time and memory of the plans, with the intervals of their times.
Chart plan_chart(const Scenario& base, const RankResult& result) {
  constexpr double room = 0.02;  // left and right of the outermost times
  Chart chart{"Time and memory of the plans", Chart::Shape::dots, {}, {}};
  std::vector<double> times, sizes;
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    const RankedPlan& plan = result.plans[i];
    const double time = plan.time / 1_s, size = plan.memory_max / 1_GiB;
    const auto [low, high] = plan.interval.value_or(std::pair(plan.time, plan.time));
    chart.points.push_back({time, size, label_of(i)});
    chart.points.back().error = Chart::Error{low / 1_s, size, high / 1_s, size};
    times.insert(times.end(), {low / 1_s, high / 1_s});
    sizes.push_back(size);
  }
  const auto [least, most] = std::ranges::minmax_element(times);
  chart.x = {*least * (1 - room), *most * (1 + room), seconds_mark,
             std::string("time of an iteration") +
                 (any_interval(result) ? "; line: 90 % interval" : "") +
                 (std::ranges::all_of(result.plans, &RankedPlan::is_simulated)
                      ? ""
                      : "; of plans not simulated the lower bound")};
  const Bytes usable = base.nodes.front().device.usable_memory;
  const bool is_same_for_all = std::ranges::all_of(
      base.nodes, [&](const NodeType& node) { return node.device.usable_memory == usable; });
  if (is_same_for_all) {
    chart.rules = {{usable / 1_GiB, "usable: " + to_text(usable), true}};
    sizes.push_back(usable / 1_GiB);
  }
  chart.y = axis_from_zero(sizes);
  chart.y.text = number_mark;
  chart.y.title = "memory of the fullest GPU, GiB";
  return chart;
}

/// "tensor 1, 2, 4, 8 · pipeline 1 to 64 (7 values)"
std::string tried_text(const std::vector<TriedKey>& tried, bool are_searched) {
  constexpr std::size_t most_listed = 8;
  std::string text;
  for (const auto& [key, values] : tried) {
    if (values.empty() || (values.size() > 1) != are_searched) continue;
    text += (text.empty() ? "" : " · ") + key->label() + " ";
    if (values.size() > most_listed) {
      text += shown_text(*key, values.front()) + " to " + shown_text(*key, values.back()) + " (" +
              std::to_string(values.size()) + " values)";
      continue;
    }
    for (std::size_t i = 0; i < values.size(); ++i)
      text += (i > 0 ? ", " : "") + shown_text(*key, values[i]);
  }
  return text;
}

/// The values of searched keys that all plans of the table have.
std::string said_once(const RankResult& result) {
  std::vector<TriedKey> said;
  for (const SearchKey& searched : search_keys())
    if (result.space.of(searched.key->name()).size() > 1 && is_said_once(searched, result))
      said.push_back({searched.key, {searched.key->value.get(result.plans.front().choice)}});
  return tried_text(said, false);
}

/// True if a reader must be told that the key was held: it could have been searched, or is not what plans have by default.
bool is_worth_saying(const TriedKey& held, const Scenario& base) {
  const std::string name = held.key->name();
  if (!base.model.moe && (name == "expert" || name == "expert_tensor")) return false;
  if (name == "no_sync" && !base.software.no_sync) return held.values.front() == 1;
  const bool can_be_searched = std::ranges::any_of(
      search_keys(), [&](const SearchKey& searched) { return searched.key == held.key; });
  return can_be_searched || held.values.front() != held.key->value.get({});
}

/// The plans that cannot be distinguished from the best, and which of them takes the least memory, if one does.
std::optional<Verdict> shared_place(const RankResult& result) {
  const std::vector<std::size_t> alike =
      plans_where(result, [](const RankedPlan& plan) { return plan.place == 1; });
  if (alike.size() < 2) return std::nullopt;
  const auto needs = [&](std::size_t i) { return result.plans[i].memory_max; };
  const std::size_t leanest = *std::ranges::min_element(alike, {}, needs);
  const bool is_one = std::ranges::none_of(alike, [&](std::size_t i) {
    // A lower bound says nothing against another figure.
    return i != leanest && (needs(i) == needs(leanest) ||
                            result.plans[i].memory_verdict == MemoryVerdict::lower_bound ||
                            result.plans[leanest].memory_verdict == MemoryVerdict::lower_bound);
  });
  return Verdict{"≈",
                 "plans " + labels_of(alike) +
                     " cannot be told apart: of measured pairs that differ by as little, "
                     "fewer than 90 in 100 come out in this order" +
                     (is_one ? ". Of them " + label_of(leanest) + " takes the least memory" : "")};
}

/// "90 % intervals begin 4 to 5 % below each time and end 8 % above it"
std::string intervals_text(const RankResult& result) {
  if (!any_interval(result)) return "";
  std::vector<double> below, above;
  for (const RankedPlan& plan : result.plans)
    if (plan.interval) {
      below.push_back(1 - plan.interval->first / plan.time);
      above.push_back(plan.interval->second / plan.time - 1);
    }
  const auto range = [](const std::vector<double>& shares) {
    const auto [least, most] = std::ranges::minmax_element(shares);
    const std::string low = fixed_text(100 * *least, 0), high = fixed_text(100 * *most, 0);
    return (low == high ? "" : low + " to ") + high + " %";
  };
  return "90 % intervals begin " + range(below) + " below each time and end " + range(above) +
         " above it";
}

/// "best: plan 1, tensor 4 × pipeline 8 × data 2, 64.77 s per iteration, at risk of not fitting; …", and the best plan that surely fits.
Words best_words(const RankResult& result, const JsonValue& data) {
  const auto short_name = [](const RankedPlan& plan, std::size_t number) {
    return (number > 0 ? "plan " + std::to_string(number) + ", " : "") +
           detail::plan_items(plan.choice.training, plan.choice.parallel).front();
  };
  const auto time_of = [&](const RankedPlan& plan, const char* at) {
    const Words time = figure(data, std::string(at) + "/iteration_time_s", text_of_time);
    return plan.is_simulated() ? time + " per iteration"
                               : "at least " + time + " per iteration (not simulated)";
  };
  const RankedPlan& best = result.plans.front();
  const Words words = (best.is_simulated() ? "best: " : "least bound: ") + short_name(best, 1) +
                      ", " + time_of(best, "/plans/0");
  if (best.surely_fits()) return words;
  const Words unsure =
      words + (best.memory_verdict == MemoryVerdict::at_risk ? ", at risk of not fitting"
                                                             : ", not known to fit");
  const auto [plan, number] = surest(result);
  if (plan == nullptr) return unsure + "; no plan surely fits";
  const Words behind =
      figure(data, "/best_sure_plan/behind_best", percent_text) +
      (result.objective == Objective::energy_per_token ? " more energy" : " slower");
  return unsure + "; best that surely fits: " + short_name(*plan, number) + ", " +
         (best.is_simulated() && plan->is_simulated() ? behind
                                                      : time_of(*plan, "/best_sure_plan")) +
         " (--set /search/surely_fits=true ranks only such plans)";
}

/// Plans whose times are bounds, that fit by less than predictions of memory miss by, and of which it is not known whether they fit.
std::vector<document::Part> doubts_of_plans(const RankResult& result) {
  const auto with_verdict = [&](MemoryVerdict verdict) {
    return plans_where(result,
                       [&](const RankedPlan& plan) { return plan.memory_verdict == verdict; });
  };
  const auto plans_text = [](const std::vector<std::size_t>& indices, const char* of_one,
                             const char* of_several) {
    return (indices.size() == 1 ? "plan " : "plans ") + labels_of(indices) +
           (indices.size() == 1 ? of_one : of_several);
  };
  std::vector<document::Part> doubts;
  const auto bounds =
      plans_where(result, [](const RankedPlan& plan) { return !plan.is_simulated(); });
  if (!bounds.empty())
    doubts.emplace_back(
        Verdict{"≥", "not simulated: " + plans_text(bounds, ". Its time is a lower bound",
                                                    ". Their times are lower bounds")});
  if (!with_verdict(MemoryVerdict::at_risk).empty())
    doubts.emplace_back(Verdict{"~", std::string("memory at risk: ") + detail::at_risk_meaning});
  if (const auto unknown = with_verdict(MemoryVerdict::lower_bound); !unknown.empty())
    doubts.emplace_back(
        Verdict{"≥", "not known to fit: " + plans_text(unknown, ". It takes", ". They take") +
                         " at least this memory: " + detail::lower_bound_reason});
  return doubts;
}

/// "leaf1 avoided, 16 nodes: the best plan takes 5.1 s, 12.1 % less than the 5.8 s with nothing avoided"
Words avoided_words(const RankResult& result, const JsonValue& data) {
  const AvoidedNodes& avoided = *result.avoided;
  const std::string what = listed(avoided.names) + " avoided, " +
                           count_text(static_cast<std::int64_t>(avoided.nodes.size()), "node") +
                           ": ";
  if (result.plans.empty()) return what + "no plan can be recommended";
  const Words takes =
      what + "the best plan takes " + time_words(result.plans.front(), data, "/plans/0");
  if (!avoided.best_of_all) return takes + "; with nothing avoided, none can be recommended";
  constexpr double least = 0.0005;  // what rounds to 0.1 %
  const double change = result.plans.front().time / *avoided.best_of_all - 1;
  if (std::abs(change) < least) return takes + ", as long as with nothing avoided";
  return takes + ", " + percent_text(std::abs(change)) + (change < 0 ? " less" : " more") +
         " than the " +
         figure(data, "/avoided/iteration_time_with_nothing_avoided_s", text_of_time) +
         " with nothing avoided";
}

Verdict proof(const RankResult& result, const JsonValue& data) {
  const bool is_energy = result.objective == Objective::energy_per_token;  // the rest go by time
  const Words gap = figure(data, "/gap", percent_text);
  if (result.gap > 0)
    return {"~", "the budget ended: a plan that was not simulated may take " +
                     (is_energy ? Words("less energy")
                                : figure(data, "/lower_bound_s", text_of_time) + " at best") +
                     ", a gap of " + gap};
  const std::string better = is_energy ? "takes less energy" : "is faster";
  const std::string what =
      result.table_is_proven && result.surest_below && result.plans.size() > 1
          ? "by the model, plans 1 to " + label_of(result.plans.size() - 1) +
                " are proven: no other plan " + better + " than one of them"
      : result.table_is_proven && !result.surest_below
          ? "by the model, the table is proven: no other plan " + better + " than one in it"
          : "by the model, plan " + label_of(0) + " is proven: no other " + better +
                ". The places below it are not";
  if (result.placements_searched > 0)
    return {"~", "with ranks in order " + what + " (gap " + gap +
                     "); placements were searched for the plans of the table only"};
  return {"✓", what + " (gap " + gap + ")"};
}

Verdict why_none(const Scenario& base, const RankResult& result) {
  if (!result.nearest) return {"✗", "no plan was considered"};
  const RejectedPlan& nearest = *result.nearest;
  std::string text = "no plan can be recommended. " +
                     std::string(nearest.memory ? "Nearest to fitting is " : "The first is ") +
                     detail::plan_text(nearest.choice.training, nearest.choice.parallel) + ": ";
  if (nearest.memory) {
    text += text_of(*nearest.memory);
    const Scenario scenario = with_plan(base, result.space, nearest.choice);
    const MemoryAccount account =
        account_memory(scenario, scenario.plan, count_in_flight(scenario.plan));
    // Else the margin of the search alone is missing. The advice has changes that no search tries.
    if (!account.fits)
      text += ". Without the margin " + memory_advice(scenario, scenario.plan, account);
  }
  for (const PlanRejection& rejection : nearest.shape) text += rejection.message + ". ";
  return {"✗", text};
}

document::Section plans_section(const Scenario& base, const RankResult& result,
                                const JsonValue& data) {
  document::Section section{"plans", "Plans", "", {}};
  if (result.plans.empty()) return section;
  document::Table table = plan_table(result, data);
  const std::string said = said_once(result);
  if (result.plans.size() > 1) table.shared = said;
  section.parts.emplace_back(std::move(table));
  for (const std::string& text :
       {result.plans.size() > 1 || said.empty() ? "" : "with " + said, intervals_text(result)})
    if (!text.empty()) section.parts.insert(section.parts.end(), {Words(), Words(text)});
  if (result.placements_searched > 0) section.parts.emplace_back(Words());
  for (std::size_t i = 0; i < result.plans.size(); ++i)
    if (const std::string& note = result.plans[i].placement_note; !note.empty())
      section.parts.emplace_back(label_of(i) + ": " + note);
  section.parts.emplace_back(plan_chart(base, result));
  return section;
}

/// True if no plan shares out experts, though the stack could: profiles of stacks that cannot list `expert` under `supports`.
bool holds_all_experts(const Scenario& base, const std::vector<TriedKey>& tried) {
  const auto may_share = [](const TriedKey& each) {
    return std::string(each.key->name()) == "expert" && each.values != std::vector{1};
  };
  return base.model.moe && std::ranges::none_of(tried, may_share) &&
         find_at(base.resolved, "/software/supports/expert") == nullptr;
}

/// " · compression of data_gradients by powersgd, zero_gather by int8"; empty where nothing is compressed.
std::string compression_text(const Compression& compression) {
  std::string text;
  for (const auto& [traffic, compressor] :
       {std::pair("pipeline_forward", &compression.pipeline_forward),
        std::pair("pipeline_backward", &compression.pipeline_backward),
        std::pair("data_gradients", &compression.data_gradients),
        std::pair("tensor_activations", &compression.tensor_activations),
        std::pair("zero_gather", &compression.zero_gather)})
    if (*compressor)
      text += (text.empty() ? " · compression of " : ", ") + std::string(traffic) + " by " +
              (*compressor)->codec->name();
  return text;
}

/// The section about the search: searched keys, fixed keys, and the proof of the result.
document::Section search_section(const Scenario& base, const RankResult& result,
                                 const JsonValue& data) {
  const auto count = [&](const char* pointer) { return figure(data, pointer, grouped_text); };
  std::vector<TriedKey> tried = tried_keys(base, result.space);
  std::erase_if(tried, [&](const TriedKey& each) {
    return !each.is_searched() && !each.values.empty() && !is_worth_saying(each, base);
  });
  const std::string searched = tried_text(tried, true);
  // "first 4 of each chunk" is another share of the layers where chunks are of another size.
  const RecomputedLayers& layers = base.plan.training.recompute_layers;
  const std::string recomputed = layers.first > 0
                                     ? "first " + std::to_string(layers.first) + " of each chunk"
                                     : "every " + std::to_string(layers.every);
  document::Section section{
      "search",
      "Search",
      "",
      {count("/considered") + " plans considered: " + count("/rejected/shape") +
           " cannot be laid out, " + count("/rejected/memory") +
           " do not fit in memory with the margin, " + count("/simulated") +
           " of the rest simulated",
       Words(), "searched: " + (searched.empty() ? "nothing" : searched),
       "held fixed: " + tried_text(tried, false) +
           (result.space.balances_layers ? " · stage_layers \"balanced\"" : "") +
           (layers.are_all() ? "" : " · recompute_layers " + recomputed) +
           compression_text(base.plan.compression)}};
  if (holds_all_experts(base, tried))
    section.parts.emplace_back(
        Verdict{"!",
                "each GPU holds all experts: --set '/search/expert=[1, 8]' tries groups that share "
                "them out"});
  if (result.avoided) section.parts.emplace_back(avoided_words(result, data));
  if (result.plans.empty()) {
    section.parts.emplace_back(why_none(base, result));
    return section;
  }
  const RankResult shown = with_surest(result);
  if (result.surest_below)
    section.parts.emplace_back("plan " + label_of(result.plans.size()) +
                               " is the best that surely fits; others between it and plan " +
                               label_of(result.plans.size() - 1) + " are left out");
  for (document::Part& doubt : doubts_of_plans(shown)) section.parts.push_back(std::move(doubt));
  if (auto shared = shared_place(shown)) section.parts.emplace_back(*std::move(shared));
  section.parts.emplace_back(proof(result, data));
  if (!result.interval_warning.empty())
    section.parts.emplace_back(Verdict{"!", result.interval_warning});
  return section;
}

/// The best plan, as the head of the page shows it.
document::Figures best_figures(const RankResult& result, const JsonValue& data) {
  if (result.plans.empty()) return {};
  const PlanChoice& best = result.plans.front().choice;
  Words note = detail::plan_text(best.training, best.parallel);
  if (const Words interval = interval_words(data, "/plans/0"); !interval.empty())
    note = note + "; 90 % interval " + interval;
  return {
      {"per iteration", time_words(result.plans.front(), data, "/plans/0"), note},
      {"samples/s", Words(result.plans.front().is_simulated() ? "" : "≤ ") +
                        figure(data, "/plans/0/samples_per_s", throughput_text)},
      {"memory of the fullest GPU", memory_words(result.plans.front(), data, "/plans/0"),
       result.plans.front().memory_verdict == MemoryVerdict::lower_bound ? "not known to fit" : ""},
      {"plans considered", figure(data, "/considered", grouped_text)},
      {"of them simulated", figure(data, "/simulated", grouped_text)},
      {"gap", figure(data, "/gap", percent_text), "how much better a missed plan may be"}};
}

JsonValue why_data(const Scenario& base, const PlanExplanation& explanation) {
  const auto& [choice, shape, memory, simulated, best] = explanation;
  const auto rejection = [](const PlanRejection& each) {
    return object_of({{"at", each.key},
                      {"why", each.message},
                      {"suggestion", only_if(!each.suggestion.empty(), each.suggestion)}});
  };
  JsonValue object = object_of({{"schema", "windtunnel/rank-why-v1"},
                                {"name", base.name},
                                {"parallel", parallel_value(choice)},
                                {"training", training_value(choice)},
                                {"verdict", !shape.empty()  ? "shape"
                                            : !memory->fits ? "memory"
                                                            : "legal"},
                                {"shape", only_if(!shape.empty(), array_of(shape, rejection))}});
  if (memory)
    object.set("memory",
               object_of({{"stage", memory->worst.stage.index()},
                          {"required_bytes", memory->worst.required.value()},
                          {"margin_bytes", (memory->with_margin - memory->worst.required).value()},
                          {"usable_bytes", memory->worst.usable.value()},
                          {"fits", memory->fits}}));
  if (simulated) object.set("iteration_time_s", json_of(simulated->time));
  if (best) object.set("best", plan_value(base, *best, 1));
  return object;
}

std::string three_decimals(double seconds) { return fixed_text(seconds, 3) + " s"; }

/// The two breakdowns side by side, without lines that are nothing in both.
document::Table breakdowns(const RankedPlan& plan, const RankedPlan& best, const JsonValue& data) {
  document::Table table{"lrrr", {{"", "this plan", "best plan", "difference"}}};
  const auto add = [&](const std::string& name, const Words& mine, const Words& other,
                       Seconds difference) {
    table.rows.push_back({name, mine, other,
                          (difference < Seconds{0} ? "-" : "+") +
                              three_decimals(std::max(difference, -difference) / 1_s)});
  };
  for (const Line line : all_lines) {
    constexpr Seconds least = 500_us;  // what rounds to a millisecond
    const Seconds mine = plan.breakdown.of(line), other = best.breakdown.of(line);
    if (std::max(mine, other) >= least)
      add(detail::with_spaces(name_of(line)), three_decimals(mine / 1_s),
          three_decimals(other / 1_s), mine - other);
  }
  add("iteration", figure(data, "/iteration_time_s", three_decimals),
      figure(data, "/best/iteration_time_s", three_decimals), plan.time - best.time);
  return table;
}

std::vector<document::Part> why_parts(const PlanExplanation& explanation, const JsonValue& data) {
  if (!explanation.shape.empty()) {
    std::vector<document::Part> parts;
    for (const PlanRejection& each : explanation.shape)
      parts.emplace_back(Verdict{
          "✗", each.message + (each.suggestion.empty() ? "" : " (" + each.suggestion + ")")});
    return parts;
  }
  if (!explanation.memory->fits) {
    const bool is_risk = explanation.memory->verdict != MemoryVerdict::does_not_fit;
    return {Verdict{"✗", std::string("does not fit") +
                             (is_risk ? " with the margin that rank keeps (memory_margin of the "
                                        "search block; run calls it at risk)"
                                      : "") +
                             ": " + text_of(*explanation.memory)}};
  }
  const RankedPlan& plan = *explanation.simulated;
  const Words facts = figure(data, "/iteration_time_s", text_of_time) + " per iteration, " +
                      to_text(plan.memory_max) + " of memory";
  if (!explanation.best || !explanation.best->is_simulated())
    return {Verdict{"~", facts + "; the search found no plan to compare it with"}};
  const RankedPlan& best = *explanation.best;
  if (plan.time <= best.time) return {Verdict{"✓", facts + ": no plan of the search is faster"}};
  return {Verdict{"~", facts + ", " + percent_text(plan.time / best.time - 1) +
                           " more than the best, " +
                           detail::plan_text(best.choice.training, best.choice.parallel)},
          Words(), breakdowns(plan, best, data)};
}

}  // namespace

JsonValue plan_value(const Key& key, int value) {
  if (key.value.kind == KeyValue::Kind::whole_number) return json_of(value);
  return key.value.kind == KeyValue::Kind::flag ? JsonValue(value == 1)
                                                : JsonValue(text_of(key, value));
}

Scenario with_plan(Scenario scenario, const SearchSpace& space, const PlanChoice& choice) {
  scenario.plan = std::get<Plan>(lay_out(scenario, space, choice));
  for (const auto& [block, values] : {std::pair("parallel", parallel_value(choice)),
                                      std::pair("training", training_value(choice))})
    if (JsonValue* found = scenario.resolved.find(block); found != nullptr && found->is_object())
      for (const JsonValue::Member& member : values.object()) found->set(member.key, member.value);
  return scenario;
}

document::Document rank_document(const Scenario& base, const RankResult& result) {
  const JsonValue data = rank_data(base, result);
  std::vector<Words> opening{"", base.model.name + " on " + grouped_text(result.space.gpus) +
                                     " GPUs of " + base.platform.name + " with " +
                                     base.software.name};
  if (!result.plans.empty()) opening.push_back(best_words(result, data));
  return {data,
          "rank",
          base.name,
          opening,
          result.plans.empty() ? "" : "per iteration",
          {},
          {plans_section(base, with_surest(result), data),
           search_section(base, result, data),
           {"scenario",
            "Scenario",
            "Scenario",
            {document::Details{"The whole scenario, with the origin of each value",
                               resolved_text(base.resolved)}}}},
          "windtunnel rank --json",
          {},
          best_figures(result, data)};
}

PlanExplanation explain_plan(const Scenario& base, const PlanChoice& choice,
                             const RankResult& result) {
  PlanExplanation explanation;
  explanation.choice = choice;
  if (!result.plans.empty()) explanation.best = result.plans.front();
  PlanMaker maker(base.model, result.space.cluster, base.software, base.plan.compression);
  const auto laid_out = lay_out_as_tried(base, result.space, explanation.choice, maker);
  if (const auto* rejections = std::get_if<std::vector<PlanRejection>>(&laid_out)) {
    explanation.shape = *rejections;
    return explanation;
  }
  const Plan& plan = *std::get<const Plan*>(laid_out);
  explanation.memory = check_memory(base, plan, base.search.memory_margin);
  if (!explanation.memory->fits) return explanation;
  const PlanFigures simulated = simulate_plans(base, result.space, {&choice}, 1).front();
  const Seconds bound =
      lower_bound({&base.model, &base.platform, &base.nodes, &base.software, &plan});
  explanation.simulated = RankedPlan{
      choice, plan.microbatches,          RankMethod::simulated,       simulated.iteration_time,
      bound,  simulated.memory.max_total, explanation.memory->verdict, simulated.breakdown,
      {}};
  return explanation;
}

document::Document why_document(const Scenario& base, const PlanExplanation& explanation) {
  const JsonValue data = why_data(base, explanation);
  return {data,
          "rank",
          base.name,
          {"", detail::plan_text(explanation.choice.training, explanation.choice.parallel)},
          "",
          {},
          {{"why", "Why", "", why_parts(explanation, data)}},
          "windtunnel rank --why --json"};
}

std::string launch_json(const Scenario& base, const RankedPlan& plan, std::size_t row,
                        const Plan& laid_out) {
  const LaunchArguments launch = megatron_arguments(laid_out);
  const auto place = [&base](const GpuPlace& each) { return place_text(base, each); };
  return pretty_text(object_of({{"schema", "windtunnel/launch-v1"},
                                {"name", base.name},
                                {"plan", plan_value(base, plan, row)},
                                {"arguments", array_of(launch.arguments)},
                                {"notes", array_of(launch.notes)},
                                {"host_map", array_of(laid_out.places, place)}})) +
         "\n";
}

}  // namespace windtunnel
