#include "questions/compare.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "core/file_io.hpp"
#include "core/mapped.hpp"
#include "core/number_in.hpp"
#include "core/option_error.hpp"
#include "evidence/evidence.hpp"
#include "evidence/interval.hpp"
#include "questions/break_even.hpp"
#include "report/comparison.hpp"
#include "report/number_text.hpp"
#include "report/report_json.hpp"
#include "report/report_words.hpp"
#include "scenario/scenario.hpp"
#include "simulate/neighbours.hpp"
#include "simulate/simulate.hpp"
#include "simulate/tasks.hpp"
#include "units/quantity_reader.hpp"
#include "units/unit_table.hpp"

namespace windtunnel {
namespace {

constexpr std::array unimportant{"$schema", "version", "name",  "description",
                                 "source",  "sweep",   "search"};
constexpr std::size_t longest_value = 40;  ///< characters of an array that are printed

bool is_unimportant(const std::string& key) {
  return std::ranges::find(unimportant, key) != unimportant.end();
}

/// Nothing there: a null pointer here, "absent" in the result.
using Places = std::vector<const JsonValue*>;

/// "data_gradients codec int8": the members of an object and of those inside it, each with its value.
void add_members_of(const JsonValue& object, const std::string& lead,
                    std::vector<std::string>& items) {
  for (const JsonValue::Member& member : object.object()) {
    if (is_unimportant(member.key) || member.value.origin.kind == OriginKind::defaulted) continue;
    const JsonValue& value = member.value;
    if (value.is_object())
      add_members_of(value, lead + member.key + " ", items);
    else if (!value.is_null())
      items.push_back(lead + member.key + " " +
                      (value.is_string() ? value.string() : canonical_text(value)));
  }
}

/// As many members as there is room for, at least one.
std::string text_of_object(const JsonValue& object) {
  std::vector<std::string> items;
  add_members_of(object, "", items);
  std::string text;
  for (const std::string& item : items) {
    if (!text.empty() && text.size() + item.size() > longest_value) return text + ", ...";
    text += (text.empty() ? "" : ", ") + item;
  }
  return text.empty() ? "{}" : text;
}

std::string text_of(const JsonValue* value) {
  if (value == nullptr) return "absent";
  if (value->is_string()) return value->string();
  if (value->is_object()) return text_of_object(*value);
  std::string text = canonical_text(*value);
  if (text.size() > longest_value) text = text.substr(0, longest_value - 3) + "...";
  return text;
}

/// Name of the object; null if it is not an object or has no name.
const JsonValue* name_of(const JsonValue* value) {
  const JsonValue* name = value == nullptr ? nullptr : value->find("name");
  return name != nullptr && name->is_string() ? name : nullptr;
}

bool all_equal(const Places& places) {
  const auto same = [](const JsonValue* a, const JsonValue* b) {
    if (a == nullptr || b == nullptr) return a == b;
    return canonical_text(*a) == canonical_text(*b);
  };
  return std::ranges::all_of(places,
                             [&](const JsonValue* place) { return same(places.front(), place); });
}

template <class Predicate>
bool all_are(const Places& places, Predicate predicate) {
  return std::ranges::all_of(
      places, [&](const JsonValue* place) { return place != nullptr && predicate(*place); });
}

class Differences {
 public:
  /// `by_name`: parts of other names differ in these, not value by value.
  explicit Differences(bool by_name) : by_name_(by_name) {}

  std::vector<InputDifference> take() { return std::move(found_); }

  void walk(const Places& places, const std::string& pointer) {
    if (all_equal(places)) return;
    const bool is_root = pointer.empty();
    if (by_name_ && !is_root && names_differ(places, pointer)) return;
    if (all_are(places, [](const JsonValue& value) { return value.is_object(); }))
      return walk_objects(places, pointer);
    if (all_are(places, [](const JsonValue& value) { return is_list_of_objects(value); }))
      return walk_lists(places, pointer);
    add(pointer, places);
  }

 private:
  static bool is_list_of_objects(const JsonValue& value) {
    return value.is_array() && !value.array().empty() && value.array().front().is_object();
  }

  void add(const std::string& pointer, const Places& places) {
    InputDifference difference{pointer, {}};
    for (const JsonValue* place : places) difference.values.push_back(text_of(place));
    found_.push_back(std::move(difference));
  }

  /// Says so, too, when the places hold things of different names.
  bool names_differ(const Places& places, const std::string& pointer) {
    Places names;
    for (const JsonValue* place : places) names.push_back(name_of(place));
    if (names.front() == nullptr || all_equal(names)) return false;
    add(pointer, names);
    return true;
  }

  void walk_objects(const Places& places, const std::string& pointer) {
    std::vector<std::string> keys;
    for (const JsonValue* place : places)
      for (const JsonValue::Member& member : place->object())
        if (!is_unimportant(member.key) && std::ranges::find(keys, member.key) == keys.end())
          keys.push_back(member.key);
    for (const std::string& key : keys) {
      Places members;
      for (const JsonValue* place : places) members.push_back(place->find(key));
      walk(members, pointer_join(pointer, key));
    }
  }

  void walk_lists(const Places& places, const std::string& pointer) {
    std::size_t longest = 0;
    for (const JsonValue* place : places) longest = std::max(longest, place->array().size());
    for (std::size_t i = 0; i < longest; ++i) {
      Places elements;
      for (const JsonValue* place : places)
        elements.push_back(i < place->array().size() ? &place->array()[i] : nullptr);
      walk(elements, pointer_join(pointer, std::to_string(i)));
    }
  }

  std::vector<InputDifference> found_;
  bool by_name_;
};

const Scenario* scenario_of(const CompareInput& input) {
  return std::get_if<Scenario>(&input.content);
}

ComparedRun run_of(const CompareInput& input, const MeasuredErrors& errors, RunDetail detail) {
  const Scenario& scenario = *scenario_of(input);
  Simulation simulation = simulate(scenario, {.keep_timeline = detail == RunDetail::page});
  if (!errors.regimes.empty()) add_interval(scenario, errors, simulation.report);
  ComparedRun run{input.label, report_value(simulation.report)};
  if (detail == RunDetail::page)
    run.details = run_details(resolved_text(scenario.resolved),
                              {&simulation.timeline, &simulation.programs, &simulation.network,
                               &scenario.plan, simulation.report.last_device},
                              simulation.report);
  return run;
}

/// The runs of all inputs: those given as reports, and those of the scenarios, simulated together. One that fails costs
/// itself; `failed` takes it, with its place among the inputs.
std::vector<ComparedRun> runs_of(const std::vector<CompareInput>& inputs,
                                 const MeasuredErrors& errors, RunDetail detail,
                                 std::map<std::size_t, ChildFailure>& failed) {
  std::vector<std::size_t> simulated;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (scenario_of(inputs[i]) != nullptr) simulated.push_back(i);
  Tasks<ComparedRun> tasks;
  tasks.count = simulated.size();
  tasks.at_once = default_at_once();
  tasks.work = [&](std::size_t i) { return run_of(inputs[simulated[i]], errors, detail); };
  std::vector<TaskOutcome<ComparedRun>> outcomes = run_tasks(tasks);
  std::vector<ComparedRun> runs;
  for (std::size_t i = 0, next = 0; i < inputs.size(); ++i) {
    if (scenario_of(inputs[i]) == nullptr) {
      runs.push_back({inputs[i].label, checked_report(std::get<JsonValue>(inputs[i].content))});
    } else {
      TaskOutcome<ComparedRun>& outcome = outcomes[next++];
      if (const auto* failure = std::get_if<ChildFailure>(&outcome))
        failed.emplace(i, *failure);
      else
        runs.push_back(std::move(std::get<ComparedRun>(outcome)));
    }
  }
  return runs;
}

bool all_are_scenarios(const std::vector<CompareInput>& inputs) {
  return std::ranges::all_of(inputs, scenario_of);
}

/// Differences between resolved scenarios; as soon as one run is known by its report only, between the statements of the reports
/// about their jobs.
std::vector<InputDifference> differences_of(const std::vector<CompareInput>& inputs,
                                            const std::vector<ComparedRun>& runs) {
  std::vector<const JsonValue*> trees;
  const bool scenarios = all_are_scenarios(inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const JsonValue* tree =
        scenarios ? &scenario_of(inputs[i])->resolved : runs[i].report.find("job");
    if (tree == nullptr) return {};
    trees.push_back(tree);
  }
  std::vector<InputDifference> differences = input_differences(trees);
  // A report's plan in words is shown where nothing else says what differs.
  if (!scenarios && differences.size() > 1)
    std::erase_if(differences, [](const InputDifference& each) { return each.pointer == "/plan"; });
  return differences;
}

/// Why intervals are wide, each sentence once: "A, B: the prediction interval is …".
std::vector<std::string> interval_warnings(const std::vector<ComparedRun>& runs) {
  std::vector<std::pair<std::string, std::string>> said;  // of which run, and what
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const JsonValue* const warnings = runs[i].report.find("warnings");
    if (warnings == nullptr || !warnings->is_array()) continue;
    for (const JsonValue& warning : warnings->array())
      if (warning.is_string() && warning.string().starts_with(interval_warning_start))
        said.emplace_back(run_letter(i), warning.string());
  }
  return mapped(detail::said_once(said),
                [](const auto& each) { return each.first + ": " + each.second; });
}

/// Conditions that may make the comparison unfair, or the verdict a surprise.
std::vector<std::string> warnings_of(const Comparison& comparison, bool scenarios) {
  std::vector<std::string> warnings;
  bool same_hash = true, other_version = false;
  const std::string version = comparison.runs.front().text("/version");
  for (const ComparedRun& run : comparison.runs) {
    same_hash =
        same_hash && run.text("/scenario_hash") == comparison.runs.front().text("/scenario_hash");
    other_version = other_version || (!version.empty() && !run.text("/version").empty() &&
                                      run.text("/version") != version);
  }
  if (same_hash && comparison.runs.size() > 1)
    warnings.emplace_back("the runs are of one and the same scenario");
  if (!same_hash && comparison.differences.empty() && !scenarios)
    warnings.emplace_back("the scenarios differ in what reports do not hold; compare the files");
  if (other_version) warnings.emplace_back("the reports are of different versions of windtunnel");
  std::ranges::move(interval_warnings(comparison.runs), std::back_inserter(warnings));
  return warnings;
}

/// `first` against `second`, on both networks.
void add_questions(const std::string& what, const JsonValue& first, const Scenario& second,
                   std::vector<BreakEvenQuestion>& questions) {
  for (const NetworkPart part : {NetworkPart::between_nodes, NetworkPart::inside_nodes})
    questions.push_back({what, first, second.resolved, part, network_bandwidth(second, part)});
}

/// For a scenario that compresses several classes: asks about each of them against the scenario without it.
void add_class_questions(const Scenario& scenario, std::vector<BreakEvenQuestion>& questions) {
  const JsonValue* const block = scenario.resolved.find("compression");
  if (block == nullptr || !block->is_object() || block->object().size() < 2) return;
  for (const JsonValue::Member& member : block->object()) {
    JsonValue without = scenario.resolved;
    without.find("compression")->erase(member.key);
    add_questions(pointer_join("/compression", member.key), without, scenario, questions);
  }
}

std::vector<BreakEvenQuestion> questions_of(const std::vector<CompareInput>& inputs) {
  std::vector<BreakEvenQuestion> questions;
  const Scenario* const first = scenario_of(inputs.front());
  for (std::size_t i = 1; first != nullptr && i < inputs.size(); ++i) {
    const Scenario* const second = scenario_of(inputs[i]);
    if (second == nullptr) continue;
    add_questions(inputs[i].label, first->resolved, *second, questions);
    add_class_questions(*second, questions);
  }
  return questions;
}

/// The seed of all scenarios that are compared.
std::uint64_t seed_of(const std::vector<CompareInput>& inputs) {
  for (const CompareInput& input : inputs)
    if (const Scenario* const scenario = scenario_of(input)) return scenario->seed;
  return 0;
}

/// Adds the effect of each codec of each scenario on its job, which is simulated without it, and a warning for each that makes it slower.
void add_codecs(const std::vector<CompareInput>& inputs, const Library& library,
                Comparison& comparison) {
  std::vector<JsonValue> without, with;
  std::map<std::size_t, std::size_t> with_of_run;  // place in `with`
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Scenario* const scenario = scenario_of(inputs[i]);
    if (scenario == nullptr) continue;
    for (CodecBreakEven codec : codec_break_evens(*scenario)) {
      codec.run = i;
      comparison.codecs.push_back(codec);
      without.push_back(scenario->resolved);
      without.back().find("compression")->erase(name_of(codec.traffic));
      if (with_of_run.emplace(i, with.size()).second) with.push_back(scenario->resolved);
    }
  }
  TimedSimulations how{.what_for = "simulating without a codec",
                       .at_once = default_at_once(),
                       .seed = seed_of(inputs)};
  const std::vector<Seconds> times = iteration_times(without, library, how);
  how.has_slow_codecs = true;
  const std::vector<Seconds> slow_without = iteration_times(without, library, how),
                             slow_with = iteration_times(with, library, how);
  for (std::size_t i = 0; i < times.size(); ++i) {
    CodecBreakEven& codec = comparison.codecs[i];
    codec.saved_by_job = times[i] - comparison.runs[codec.run].iteration_time();
    codec.saved_if_slow = slow_without[i] - slow_with[with_of_run.at(codec.run)];
    for (Seconds* saved : {&codec.saved_by_job, &codec.saved_if_slow})
      if (std::abs(*saved / times[i]) < equal_within) *saved = Seconds{};
    if (codec.slows_job())
      comparison.warnings.push_back(inputs[codec.run].label + ": compressing " +
                                    name_of(codec.traffic) + " makes an iteration " +
                                    to_text(Seconds{} - codec.saved_by_job) + " longer");
  }
}

/// The sign of what the second run's value does to its speed, where that is certain: a rate of the machine or a share of it, a time, an
/// oversubscription, faults or neighbours. 0: not known.
int effect_on_speed(const InputDifference& difference) {
  constexpr std::array shares{"compute_efficiency", "nic_efficiency", "bandwidth_efficiency",
                              "peak_fraction", "share"};
  const std::string &pointer = difference.pointer, key = pointer.substr(pointer.rfind('/') + 1);
  const std::string &before = difference.values[0], &after = difference.values[1];
  if (pointer == "/platform/faults" || pointer == "/neighbours")
    return before == "absent" ? -1 : after == "absent" ? 1 : 0;
  if (!pointer.starts_with("/platform/")) return 0;
  using detail::unit_table;
  const auto growth = [](double from, double to) { return from < to ? 1 : from > to ? -1 : 0; };
  const auto amount = written_amount(before), other = written_amount(after);
  if (amount && other && amount->kind == other->kind) {
    if (amount->kind == unit_table<Bytes>().kind) return 0;
    const int sign = growth(amount->number * amount->factor, other->number * other->factor);
    return amount->kind == unit_table<Seconds>().kind ? -sign : sign;
  }
  const auto number = number_in(before), second = number_in(after);
  if (!number || !second) return 0;
  if (key == "oversubscription") return -growth(*number, *second);
  if (key == "share" && *number * *second == 0) return 0;  // others carry what a lost card did
  return std::ranges::find(shares, key) == shares.end() ? 0 : growth(*number, *second);
}

/// Why the second run can only be slower, or only faster, as its time says: no error of the model decides which. Empty where it may be either.
std::string certainty_of(const CompareInput& first, const CompareInput& second, double ratio) {
  if (scenario_of(first) == nullptr || scenario_of(second) == nullptr ||
      scenario_of(first)->software.name != scenario_of(second)->software.name)
    return {};
  Differences differences(false);
  differences.walk({&scenario_of(first)->resolved, &scenario_of(second)->resolved}, {});
  int side = 0;
  bool has_neighbours = false;
  for (const InputDifference& difference : differences.take()) {
    has_neighbours = has_neighbours || difference.pointer == "/neighbours";
    const int effect = effect_on_speed(difference);
    if (effect == 0 || effect == -side) return {};
    side = effect;
  }
  if (side * (ratio - 1) <= 0) return {};
  return std::string("only the machine ") +
         (has_neighbours ? "and its neighbours differ, and nothing in them is "
                         : "differs, and nothing in it is ") +
         (side < 0 ? "faster" : "slower");
}

/// Each run against the first, as measured pairs tell.
std::vector<std::optional<Ordering>> orderings_of(const std::vector<CompareInput>& inputs,
                                                  const std::vector<ComparedRun>& runs,
                                                  const PairErrors& errors) {
  std::vector<std::optional<Ordering>> orderings(1);
  const auto judged = [&](const ComparedRun& run) {
    const auto tokens = [](const ComparedRun& each) {
      return each.number("/tokens_per_s") * each.iteration_time();
    };
    // Times of iterations that hold as many tokens.
    return judged_run(run.report).scaled(tokens(runs.front()) / tokens(run));
  };
  constexpr double rounding = 1e-9;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    std::optional<Ordering>& ordering = orderings.emplace_back();
    const std::string hash = runs[i].text("/scenario_hash");
    if (!hash.empty() && hash == runs.front().text("/scenario_hash")) continue;  // itself
    ordering = order(judged(runs.front()), judged(runs[i]), errors);
    if (!ordering) continue;
    ordering->per_token =
        std::abs(runs.front().iteration_time() / runs[i].iteration_time() / ordering->ratio - 1) >
        rounding;
    if (std::string why = certainty_of(inputs.front(), inputs[i], ordering->ratio); !why.empty())
      ordering = certain(std::move(*ordering), std::move(why));
  }
  const bool any =
      std::ranges::any_of(orderings, [](const auto& each) { return each.has_value(); });
  return any ? orderings : std::vector<std::optional<Ordering>>();
}

/// A warning for each run that differs from the first by compression alone, and is slower.
void warn_of_losses(Comparison& comparison) {
  const auto is_codec = [](const InputDifference& difference) {
    return difference.pointer.starts_with("/compression");
  };
  if (comparison.differences.empty() || !std::ranges::all_of(comparison.differences, is_codec))
    return;
  for (std::size_t i = 1; i < comparison.runs.size(); ++i)
    if (comparison.speedup(i) < 1)
      comparison.warnings.push_back(comparison.runs[i].label + " is slower than " +
                                    comparison.runs[0].label + ": " +
                                    to_text(comparison.runs[i].iteration_time()) + " against " +
                                    to_text(comparison.runs[0].iteration_time()));
}

}  // namespace

std::vector<InputDifference> input_differences(const std::vector<const JsonValue*>& trees) {
  Differences differences(true);
  differences.walk(trees, {});
  return differences.take();
}

CompareInput read_compare_input(const std::filesystem::path& file, const Library& library,
                                ReadOptions options) {
  Problems problems;
  JsonValue document = parse_json(read_source_or_stdin(file), problems);
  if (is_report(document)) {
    problems.throw_if_any();
    return {file.string(), std::move(document)};
  }
  // The scenario's own reader reports its problems.
  options.left = LeftToCaller::neighbours;
  return {file.string(), with_neighbours(read_scenario(file, library, options))};
}

std::string toggled_pointer(const std::string& pointer) {
  return pointer.starts_with('/') ? pointer : "/" + pointer;
}

std::vector<CompareInput> toggle_inputs(Scenario without, Scenario with, const std::string& name,
                                        const std::string& pointer) {
  const std::string whole = toggled_pointer(pointer);
  if (with.hash == without.hash) {
    const JsonValue* const compression = find_at(with.resolved, "/compression");
    const bool has_no_codec =
        whole.starts_with("/compression") && (compression == nullptr || !compression->is_object());
    throw option_error(
        "--toggle", pointer,
        has_no_codec ? with.name + " compresses nothing, so the two runs would be one and the same"
                     : "taking " + whole + " away from " + name + " changes nothing",
        has_no_codec ? "say what to compress, as in --set '/compression={\"data_gradients\": "
                       "{\"codec\": \"powersgd\", \"rank\": 128}}' (windtunnel list codecs)"
                     : "name what the file has and what is not its default");
  }
  return {{"without " + whole, std::move(without)}, {"with " + whole, std::move(with)}};
}

std::vector<CompareInput> toggle_inputs(const std::filesystem::path& file, const Library& library,
                                        ReadOptions options, const std::string& pointer) {
  options.left = LeftToCaller::neighbours;
  Scenario with = with_neighbours(read_scenario(file, library, options));
  options.overrides.emplace_back(toggled_pointer(pointer), "null");
  try {
    return toggle_inputs(with_neighbours(read_scenario(file, library, options)), std::move(with),
                         file.string(), pointer);
  } catch (const InputError& error) {
    const Problem& first = error.problems().front();
    throw option_error("--toggle", pointer, first.message, first.suggestion);
  }
}

Comparison compare(const std::vector<CompareInput>& inputs, const Library& library,
                   BreakEvens break_evens, RunDetail detail) {
  WT_EXPECT(inputs.size() >= 2);
  Comparison comparison;
  std::map<std::size_t, ChildFailure> failed;
  const MeasuredErrors errors = read_evidence(library);
  comparison.runs = runs_of(inputs, errors, detail, failed);
  if (comparison.runs.empty()) throw_failure(failed.at(0), inputs.front().label);
  std::vector<CompareInput> compared = inputs;
  for (auto failure = failed.rbegin(); failure != failed.rend(); ++failure)
    compared.erase(compared.begin() + static_cast<std::ptrdiff_t>(failure->first));
  for (const auto& [place, failure] : failed)
    comparison.failed.push_back({inputs[place].label, failure.text});
  comparison.orderings = orderings_of(compared, comparison.runs, errors.pairs);
  comparison.differences = differences_of(compared, comparison.runs);
  comparison.warnings = warnings_of(comparison, all_are_scenarios(compared));
  add_codecs(compared, library, comparison);
  warn_of_losses(comparison);
  if (break_evens == BreakEvens::simulated)
    comparison.break_evens = find_break_evens(questions_of(compared), library,
                                              {.at_once = default_at_once()}, seed_of(compared));
  return comparison;
}

}  // namespace windtunnel
