#include "search/rank_command.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include "core/file_io.hpp"
#include "core/option_error.hpp"
#include "core/problem.hpp"
#include "core/text_list.hpp"
#include "evidence/interval.hpp"
#include "plan/plan_check.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/progress_line.hpp"
#include "report/report_json.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"
#include "report/text_table.hpp"
#include "search/launch_arguments.hpp"
#include "search/plan_explanation.hpp"
#include "search/rank.hpp"
#include "simulate/forked.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {

JsonValue plan_value(const Key& key, int value) {
  if (key.value.kind == KeyValue::Kind::whole_number) return json_of(value);
  return key.value.kind == KeyValue::Kind::flag ? JsonValue(value == 1)
                                                : JsonValue(text_of(key, value));
}

namespace {

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
  return object_of(
      {{"rank", rank},
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
       {"placement", placement_value(base, plan.choice.parallel)},
       {"placement_note", only_if(!plan.placement_note.empty(), plan.placement_note)},
       {"method", name_of(plan.method)},
       {"breakdown_s",
        only_if(plan.method == RankMethod::simulated, breakdown_value(plan.breakdown))}});
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

Scenario with_plan(Scenario scenario, const SearchSpace& space, const PlanChoice& choice) {
  scenario.plan = std::get<Plan>(lay_out(scenario, space, choice));
  for (const auto& [block, values] : {std::pair("parallel", parallel_value(choice)),
                                      std::pair("training", training_value(choice))})
    if (JsonValue* found = scenario.resolved.find(block); found != nullptr && found->is_object())
      for (const JsonValue::Member& member : values.object()) found->set(member.key, member.value);
  return scenario;
}

void judge_plans(const Scenario& base, const MeasuredErrors& errors, RankResult& result) {
  std::optional<JudgedRun> best, leader;  // of all, and of the last place begun
  std::size_t last_place = 1;
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    RankedPlan& plan = result.plans[i];
    if (plan.method != RankMethod::simulated) continue;
    const Scenario scenario = with_plan(base, result.space, plan.choice);
    if (!errors.regimes.empty()) {
      const Interval interval = interval_from(errors, traits_of(scenario), plan.time,
                                              share_outside_kernels(plan.breakdown));
      plan.interval = {interval.low, interval.high};
    }
    if (result.objective != Objective::time || errors.pairs.sets.empty()) continue;
    const JudgedRun judged = judged_run(scenario, plan.time, plan.breakdown, plan.interval);
    if (!best) best = judged;
    const auto is_behind = [&](const JudgedRun& other) {
      const std::optional<Ordering> ordering = order(other, judged, errors.pairs);
      return ordering && ordering->is_known();
    };
    if (i > 0) plan.against_best = order(*best, judged, errors.pairs);
    plan.place = 1;
    if (!is_behind(*best)) continue;
    if (!leader || is_behind(*leader)) {
      leader = judged;
      last_place = i + 1;
    }
    plan.place = last_place;
  }
}

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

namespace {

/// Reads the parts of one --why.
class PlanTextReader {
 public:
  PlanTextReader(const std::string& text, const Scenario& base, const SearchSpace& space)
      : text_(text), space_(space), choice_{base.plan.training, base.plan.parallel} {
    choice_.parallel.data = 0;
  }

  PlanChoice read() {
    std::string_view rest = text_;
    while (!rest.empty()) {
      const std::size_t comma = rest.find(',');
      read_part(rest.substr(0, comma));
      rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    }
    finish();
    return std::move(choice_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why, const std::string& suggestion) const {
    throw option_error("--why", text_, why, suggestion);
  }

  void read_part(std::string_view part) {
    const std::size_t equals = part.find('=');
    const std::string key(part.substr(0, equals));
    const std::string value(equals == std::string_view::npos ? "" : part.substr(equals + 1));
    if (equals == std::string_view::npos)
      refuse("\"" + key + "\" has no \"=\"", "write tensor=8,pipeline=4,micro_batch=2");
    const Key& known = key_named(key);
    known.value.set(choice_, value_of(known, value));
    has_schedule_ = has_schedule_ || known.pointer == plan_keys::schedule;
  }

  const Key& key_named(const std::string& name) const {
    std::vector<std::string> names;
    std::string list = "the keys are";
    for (const SearchKey& searched : search_keys()) {
      names.push_back(searched.key->name());
      if (names.back() == name) return *searched.key;
      list += (names.size() == 1 ? " " : ", ") + names.back();
    }
    const std::string nearest = closest_match(name, names);
    refuse("unknown key \"" + name + "\"",
           nearest.empty() ? list : "did you mean \"" + nearest + "\"?");
  }

  int value_of(const Key& key, const std::string& text) const {
    const KeyValue& value = key.value;
    std::string wanted = "write true or false";
    if (value.kind == KeyValue::Kind::whole_number) {
      int number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error == std::errc{} && end == text.data() + text.size() && number >= value.least &&
          number <= value.most)
        return number;
      wanted = "write a whole number from " + std::to_string(value.least) + " to " +
               std::to_string(value.most);
    } else {
      for (int i = 0; i <= value.most; ++i)
        if (text == text_of(key, i)) return i;
      if (value.kind == KeyValue::Kind::word)
        for (const std::string& word : value.words)
          wanted = (&word == &value.words.front() ? "one of " : wanted + ", ") + word;
    }
    refuse(key.name() + " is \"" + text + "\"", wanted);
  }

  /// What follows from the rest: data, the schedule of several chunks, stages of another number.
  void finish() {
    Parallel& parallel = choice_.parallel;
    const std::int64_t ways = parallel.ranks_of_replica();
    if (parallel.data == 0 && space_.gpus % ways == 0)
      parallel.data = static_cast<int>(space_.gpus / ways);
    if (!has_schedule_ && !parallel.schedule->takes(parallel.virtual_pipeline))
      parallel.schedule = default_schedule(parallel.virtual_pipeline);
    if (static_cast<int>(parallel.stage_layers.size()) != parallel.pipeline)
      parallel.stage_layers.clear();
    if (static_cast<int>(parallel.position_layers.size()) !=
        parallel.pipeline * parallel.virtual_pipeline)
      parallel.position_layers.clear();
  }

  const std::string& text_;
  const SearchSpace& space_;
  PlanChoice choice_;
  bool has_schedule_ = false;
};

}  // namespace

PlanChoice read_plan_text(const std::string& text, const Scenario& base, const SearchSpace& space) {
  return PlanTextReader(text, base, space).read();
}

namespace {

using detail::indent;
using detail::marked;
using detail::Painter;
using detail::Tone;
using detail::with_spaces;

/// One column of the table: what each plan has in it.
struct Column {
  std::string title;
  char side = 'r';  ///< as in text_table()
  std::function<std::string(const RankedPlan&)> cell;
};

/// The lines of the breakdown that take most, at least a twentieth each: "compute 84 %, pipeline bubble 9 %".
std::string what_takes_the_time(const RankedPlan& plan) {
  constexpr double least_share = 0.05;
  constexpr std::size_t most_lines = 2;
  if (plan.method != RankMethod::simulated) return "not simulated: time is a lower bound";
  std::vector<Line> lines(all_lines.begin(), all_lines.end());
  std::stable_sort(lines.begin(), lines.end(),
                   [&](Line a, Line b) { return plan.breakdown.of(a) > plan.breakdown.of(b); });
  std::string text;
  for (std::size_t i = 0; i < most_lines; ++i) {
    const double share = plan.breakdown.of(lines[i]) / plan.time;
    if (i > 0 && share < least_share) break;
    text += (i > 0 ? ", " : "") + with_spaces(name_of(lines[i])) + " " +
            fixed_text(100 * share, 0) + " %";
  }
  return text;
}

/// Whether the plans of the table have the same value of the key.
bool agree_on(const Key& key, const std::vector<RankedPlan>& plans) {
  return std::all_of(plans.begin(), plans.end(), [&](const RankedPlan& plan) {
    return key.value.get(plan.choice) == key.value.get(plans.front().choice);
  });
}

/// Whether the key has no column since one line can speak for all plans.
bool is_said_once(const SearchKey& searched, const RankResult& result) {
  return !searched.varies_always && result.space.tries_everything &&
         agree_on(*searched.key, result.plans);
}

std::vector<Column> plan_columns(const RankResult& result) {
  std::vector<Column> columns;
  for (const SearchKey& searched : search_keys()) {
    const Key& key = *searched.key;
    const std::vector<int>& tried = result.space.of(key.name());
    const bool is_derived = tried.empty() && !agree_on(key, result.plans);
    if (!searched.varies_always &&
        ((tried.size() < 2 && !is_derived) || is_said_once(searched, result)))
      continue;
    const bool is_number = key.value.kind == KeyValue::Kind::whole_number;
    columns.push_back({key.label(), is_number ? 'r' : 'l',
                       [&key](const auto& p) { return shown_text(key, key.value.get(p.choice)); }});
  }
  return columns;
}

std::vector<Column> columns_of(const RankResult& result) {
  std::vector<Column> columns = plan_columns(result);
  columns.push_back({"time", 'r', [](const auto& p) { return to_text(p.time); }});
  columns.push_back({"samples/s", 'r', [](const auto& p) {
                       return fixed_text(p.choice.training.global_batch / (p.time / 1_s), 1);
                     }});
  if (!is_always_shown(result.objective))
    columns.push_back({result.objective_column.title, 'r', [&result](const auto& p) {
                         return number_text(result.objective_column, p.penalty);
                       }});
  columns.push_back(
      {"memory", 'r', [](const auto& p) {
         return std::string(p.memory_verdict == MemoryVerdict::lower_bound ? "≥ " : "") +
                to_text(p.memory_max) + (p.memory_verdict == MemoryVerdict::at_risk ? " ~" : "");
       }});
  columns.push_back({"what takes the time", 'l', what_takes_the_time});
  return columns;
}

/// "1", or "1a", "1b", … where plans share the place; the number in the table of one that was not judged.
std::string label_of(const RankResult& result, std::size_t index) {
  const std::size_t place = result.plans[index].place;
  if (place == 0) return std::to_string(index + 1);
  std::size_t sharing = 0, number = 0;
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    sharing += result.plans[i].place == place;
    number += result.plans[i].place == place && i <= index;
  }
  if (sharing == 1) return std::to_string(place);
  constexpr std::size_t letters = 26;
  std::string letter;
  for (std::size_t rest = number; rest > 0; rest = (rest - 1) / letters)
    letter.insert(letter.begin(), static_cast<char>('a' + (rest - 1) % letters));
  return std::to_string(place) + letter;
}

/// The plans that cannot be told apart from the best, and which of them takes the least memory.
std::string shared_place(const RankResult& result, const Painter& paint) {
  std::size_t count = 0, last = 0, leanest = 0;
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    if (result.plans[i].place != 1) continue;
    ++count;
    last = i;
    if (result.plans[i].memory_max < result.plans[leanest].memory_max) leanest = i;
  }
  if (count < 2) return "";
  return marked("~",
                "plans " + label_of(result, 0) + (count == 2 ? " and " : " to ") +
                    label_of(result, last) +
                    " cannot be told apart: of measured pairs that differ by as little, fewer than "
                    "90 in 100 come out in this order. Of them " +
                    label_of(result, leanest) + " takes the least memory",
                Tone::doubtful, paint);
}

std::string table(const RankResult& result, const Painter& paint) {
  std::string sides = "l";
  std::vector<TextRow> rows{{"#"}};
  for (std::size_t i = 0; i < result.plans.size(); ++i) rows.push_back({label_of(result, i)});
  for (const Column& column : columns_of(result)) {
    sides += column.side;
    rows.front().push_back(column.title);
    for (std::size_t i = 0; i < result.plans.size(); ++i)
      rows[i + 1].push_back(column.cell(result.plans[i]));
  }
  const std::string text = text_table(sides, rows);
  const std::size_t end = text.find('\n') + 1;
  return "\n" + paint(Tone::heading, text.substr(0, end)) + text.substr(end);
}

/// The values of searched keys that all plans of the table have.
std::string said_once(const RankResult& result) {
  std::string text;
  for (const SearchKey& searched : search_keys()) {
    const Key& key = *searched.key;
    if (result.space.of(key.name()).size() < 2 || !is_said_once(searched, result)) continue;
    text += (text.empty() ? "" : " · ") + key.label() + " " +
            shown_text(key, key.value.get(result.plans.front().choice));
  }
  if (text.empty()) return "";
  return "\n" + detail::paragraph((result.plans.size() > 1 ? "all of them: " : "with ") + text);
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

/// Whether a reader must be told that the key was held: it could have been searched, or is not what plans have by default.
bool is_worth_saying(const TriedKey& held, const Scenario& base) {
  const std::string name = held.key->name();
  if (!base.model.moe && (name == "expert" || name == "expert_tensor")) return false;
  const bool can_be_searched =
      std::any_of(search_keys().begin(), search_keys().end(),
                  [&](const SearchKey& searched) { return searched.key == held.key; });
  return can_be_searched || held.values.front() != held.key->value.get({});
}

/// What was searched, and what was held fixed.
std::string searched_text(const Scenario& base, const RankResult& result) {
  std::vector<TriedKey> tried = tried_keys(base, result.space);
  std::erase_if(tried, [&](const TriedKey& each) {
    return !each.is_searched() && !each.values.empty() && !is_worth_saying(each, base);
  });
  const std::string searched = tried_text(tried, true);
  return "\n" + detail::paragraph("searched: " + (searched.empty() ? "nothing" : searched)) +
         detail::paragraph("held fixed: " + tried_text(tried, false));
}

std::string counted(std::size_t count, const char* what) {
  return grouped_text(static_cast<double>(count)) + " " + what;
}

std::string counts(const RankResult& result) {
  return "\n" + detail::paragraph(
                    counted(result.considered, "plans considered: ") +
                    counted(result.rejected_shape, "cannot be laid out, ") +
                    counted(result.rejected_memory, "do not fit in memory with the margin, ") +
                    counted(result.simulated, "of the rest simulated"));
}

/// What the marks beside the memory of plans mean.
std::string memory_marks(const RankResult& result, const Painter& paint) {
  const auto has = [&](MemoryVerdict verdict) {
    return std::any_of(result.plans.begin(), result.plans.end(),
                       [verdict](const auto& plan) { return plan.memory_verdict == verdict; });
  };
  std::string text;
  if (has(MemoryVerdict::at_risk))
    text += marked("~", std::string("memory at risk: ") + detail::at_risk_meaning, Tone::doubtful,
                   paint);
  if (has(MemoryVerdict::lower_bound))
    text += marked("≥", "memory with ZeRO 3 is at least this: not all of its buffers are counted",
                   Tone::doubtful, paint);
  return text;
}

/// What the search of placements found, by plan.
std::string placements(const RankResult& result) {
  if (result.placements_searched == 0) return "";
  std::string text = "\n";
  for (std::size_t i = 0; i < result.plans.size(); ++i)
    if (!result.plans[i].placement_note.empty())
      text += detail::paragraph(label_of(result, i) + ": " + result.plans[i].placement_note);
  return text;
}

std::string verdict(const RankResult& result, const Painter& paint) {
  const bool is_energy = result.objective == Objective::energy_per_token;  // the rest go by time
  if (result.gap > 0)
    return marked("~",
                  "the budget ended: a plan that was not simulated may take " +
                      (is_energy ? "less energy" : to_text(result.lower_bound) + " at best") +
                      ", a gap of " + percent_text(result.gap),
                  Tone::doubtful, paint);
  const std::string better = is_energy ? "takes less energy" : "is faster";
  const std::string what =
      result.table_is_proven
          ? "by the model, the table is proven: no other plan " + better + " than one in it"
          : "by the model, plan " + label_of(result, 0) + " is proven: no other " + better +
                ". The places below it are not";
  if (result.placements_searched > 0)
    return marked("~",
                  "with ranks in order " + what +
                      " (gap 0.0 %); placements were searched for the plans of the table only",
                  Tone::doubtful, paint);
  return marked("✓", what + " (gap 0.0 %)", Tone::good, paint);
}

std::string why_none(const RankResult& result, const Painter& paint) {
  if (!result.nearest) return marked("✗", "no plan was considered", Tone::bad, paint);
  const RejectedPlan& nearest = *result.nearest;
  std::string text = "no plan can be recommended. " +
                     std::string(nearest.memory ? "Nearest to fitting is " : "The first is ") +
                     detail::plan_text(nearest.choice.training, nearest.choice.parallel) + ": ";
  if (nearest.memory) text += text_of(*nearest.memory);
  for (const PlanRejection& rejection : nearest.shape) text += rejection.message + ". ";
  return marked("✗", text, Tone::bad, paint);
}

}  // namespace

std::string rank_text(const Scenario& base, const RankResult& result, Colour colour) {
  const Painter paint(colour);
  const std::string head =
      paint(Tone::heading, base.name) + "\n\n" +
      detail::paragraph(base.model.name + " on " +
                        counted(static_cast<std::size_t>(result.space.gpus), "GPUs of ") +
                        base.platform.name + " with " + base.software.name);
  if (result.plans.empty())
    return head + counts(result) + searched_text(base, result) + why_none(result, paint);
  return head + table(result, paint) + said_once(result) + placements(result) + counts(result) +
         searched_text(base, result) + memory_marks(result, paint) + shared_place(result, paint) +
         verdict(result, paint);
}

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

/// Which GPU plays which rank, in the file that was named for it.
void write_host_map(const std::string& file, const Plan& plan, std::ostream& messages) {
  if (file.empty()) {
    messages << "note: --host-map FILE writes which GPU runs which rank\n";
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
    out << joined(launch.arguments, " \\\n") << "\n";
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
    judge_plans(base, request.evidence, result);
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
