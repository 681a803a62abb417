#include "evidence/evidence.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/file_io.hpp"
#include "core/json_build.hpp"
#include "core/json_value.hpp"
#include "core/object_reader.hpp"
#include "core/text_list.hpp"
#include "evidence/measurement_set.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "scenario/key_table.hpp"

namespace windtunnel {
namespace {

constexpr int digits_shown = 4;

/// "12", "7.468 B"
std::string amount_text(double amount) {
  constexpr double billion = 1e9;
  if (amount < billion) return significant_text(amount, digits_shown);
  return significant_text(amount / billion, digits_shown) + " B";
}

/// Sizes and choices of the job outside the regime's.
using Amount = std::map<std::string, double>::value_type;
using Choice = std::map<std::string, std::string>::value_type;

/// "gpus 128, measured 8 to 64"
std::string difference_text(const Amount& amount, const std::pair<double, double>& measured) {
  const auto& [lowest, highest] = measured;
  return amount.first + " " + amount_text(amount.second) + ", measured " + amount_text(lowest) +
         (lowest == highest ? "" : " to " + amount_text(highest));
}

std::vector<Difference> job_beyond(const EvidenceRegime& regime, const ScenarioTraits& traits) {
  std::vector<Difference> reasons;
  for (const Amount& amount : traits.amounts) {
    const auto range = regime.ranges.find(amount.first);
    if (range == regime.ranges.end()) continue;
    if (amount.second < range->second.first || amount.second > range->second.second)
      reasons.push_back([&amount, range] { return difference_text(amount, range->second); });
  }
  for (const Choice& choice : traits.choices) {
    const auto known = regime.choices.find(choice.first);
    if (known != regime.choices.end() && !known->second.contains(choice.second))
      reasons.push_back([&choice, known] {
        return choice.first + " " + choice.second + ", measured " + listed(known->second);
      });
  }
  return reasons;
}

std::map<std::string, std::string> choices_of(const Scenario& scenario) {
  const JsonValue& resolved = scenario.resolved;
  std::map<std::string, std::string> choices;
  // From the resolved scenario: what an author can write is what can be compared.
  for (const Key& key : key_table())
    if (key.is_choice && key.is_choice(scenario.plan.parallel))
      if (const JsonValue* value = find_at(resolved, key.pointer))
        choices[key.name()] = value->is_array()    ? "a list"  // a placement
                              : value->is_string() ? value->string()
                                                   : canonical_text(*value);
  const JsonValue* const codecs = resolved.find("compression");  // by traffic class
  const bool is_compressed =
      codecs != nullptr && codecs->is_object() &&
      std::ranges::any_of(codecs->object(), [](const auto& each) { return !each.value.is_null(); });
  choices["compression"] = is_compressed ? "in use" : "none";
  return choices;
}

}  // namespace

std::string device_family(const std::vector<NodeType>& nodes) {
  std::set<std::string> families;
  for (const NodeType& node : nodes)
    families.insert(node.device.name.substr(0, node.device.name.find('-')));
  return joined(families, "+");
}

bool FittedNumber::is_fitted_on(const std::string& set) const {
  constexpr std::string_view jointly = "jointly on ";
  std::string_view rest = source;
  if (rest.starts_with(jointly)) rest.remove_prefix(jointly.size());
  while (true) {
    std::size_t end = rest.size(), next = rest.size();
    for (const std::string_view between : {", ", " and ", " (", ":", ";"})
      if (const std::size_t at = rest.find(between); at < end) {
        end = at;
        next = between == ", " || between == " and " ? at + between.size() : rest.size();
      }
    const std::string_view name = rest.substr(0, end);
    if (name == set) return true;
    // Several words that are not the set asked for begin the prose.
    if (next == rest.size() || name.find(' ') != std::string_view::npos) return false;
    rest.remove_prefix(next);
  }
}

std::vector<FittedNumber> fitted_numbers(const std::map<std::string, Source>& sources,
                                         const std::string& kind) {
  std::vector<FittedNumber> numbers;
  for (const auto& [key, source] : sources)
    if (source.evidence == Evidence::fitted) {
      const std::string file = source.file == nullptr ? "" : source.file->name;
      numbers.push_back(
          {kind + " " + std::filesystem::path(file).stem().string() + ": " + key, source.text});
    }
  return numbers;
}

std::vector<FittedNumber> fitted_numbers(const Scenario& scenario) {
  std::vector<FittedNumber> numbers;
  const auto add = [&](const std::map<std::string, Source>& sources, const std::string& kind) {
    std::ranges::copy(fitted_numbers(sources, kind), std::back_inserter(numbers));
  };
  std::set<std::string> devices;
  for (const NodeType& node : scenario.nodes) devices.insert(node.device.name);
  for (const NodeType& type : scenario.platform.node_types)  // nodes do not carry sources
    if (devices.erase(type.device.name) > 0) add(type.device.sources, "device");
  add(scenario.platform.sources, "platform");
  add(scenario.software.sources, "software");
  return numbers;
}

ScenarioTraits traits_of(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  ScenarioTraits traits;
  traits.software = scenario.software.name;
  traits.device_family = device_family(scenario.nodes);
  traits.platform = scenario.platform.name;
  traits.has_experts = scenario.model.moe.has_value();
  traits.amounts = {{"gpus", plan.num_ranks()},
                    {"parameters", total_parameters(scenario.model)},
                    {"sequence", scenario.model.sequence},
                    {"tensor", plan.parallel.tensor},
                    {"pipeline", plan.parallel.pipeline},
                    {"micro_batch", plan.training.micro_batch}};
  traits.choices = choices_of(scenario);
  traits.values = {stack_values(scenario), gpu_values(scenario), cluster_values(scenario)};
  return traits;
}

void EvidenceRegime::include(const ScenarioTraits& traits) {
  platforms.insert(traits.platform);
  for (const auto& [name, amount] : traits.amounts) {
    const auto [range, is_new] = ranges.try_emplace(name, amount, amount);
    range->second = {std::min(range->second.first, amount), std::max(range->second.second, amount)};
  }
  for (const auto& [name, choice] : traits.choices) choices[name].insert(choice);
  for (std::size_t axis = 0; axis < num_valued_axes; ++axis)
    values[axis].include(traits.values[axis]);
}

Extrapolation EvidenceRegime::extrapolation(const ScenarioTraits& traits) const {
  Extrapolation extrapolation;
  for (std::size_t axis = 0; axis < num_valued_axes; ++axis) {
    ValueDifferences differences = values[axis].differences(traits.values[axis]);
    extrapolation.reasons[axis] = std::move(differences.used);
    if (axis == static_cast<std::size_t>(EvidenceAxis::stack))
      extrapolation.unused_of_stack = differences.unused;
  }
  extrapolation.of(EvidenceAxis::job) = job_beyond(*this, traits);
  return extrapolation;
}

namespace {

constexpr const char* schema_name = "windtunnel/residuals-v2";
constexpr double decimals = 1e5;  ///< residuals are written to 0.001 %
constexpr std::array<const char*, num_valued_axes> axis_names{"stack", "gpu", "cluster"};

/// To twelve digits: what remains of a unit's factor is not written.
double rounded(double number) {
  constexpr int digits = 12;
  return rounded_to(number, digits);
}

JsonValue residuals_value(const std::vector<double>& residuals) {
  return array_of(residuals, [](double each) { return std::round(each * decimals) / decimals; });
}

JsonValue regime_value(const EvidenceRegime& regime) {
  const auto words_value = [](const std::set<std::string>& words) { return array_of(words); };
  const auto range_value = [](const std::pair<double, double>& range) {
    return array_of(std::array{range.first, range.second});
  };
  JsonValue values = empty_object();
  for (std::size_t axis = 0; axis < num_valued_axes; ++axis) {
    const MeasuredValues& of_axis = regime.values[axis];
    JsonValue& value =
        values.set(axis_names[axis],
                   object_by_key(of_axis.numbers, [&](const std::pair<double, double>& range) {
                     return range_value({rounded(range.first), rounded(range.second)});
                   }));
    for (const auto& [key, words] : of_axis.habits) value.set(key, words_value(words));
  }
  return object_of({{"software", regime.software},
                    {"device_family", regime.device_family},
                    {"platforms", words_value(regime.platforms)},
                    {"sets", words_value(regime.sets)},
                    {"method", regime.method},
                    {"ranges", object_by_key(regime.ranges, range_value)},
                    {"choices", object_by_key(regime.choices, words_value)},
                    {"values", values},
                    {"residuals", residuals_value(regime.residuals)}});
}

/// The elements of member `key` of the wanted type; one of another type is a problem.
template <class Element>
std::vector<Element> elements_of(ObjectReader& reader, std::string_view key) {
  std::vector<Element> elements;
  const JsonValue* value = reader.require(key);
  if (value == nullptr || !value->is_array()) {
    if (value != nullptr) reader.problem(key, "is " + value->kind_name() + ", not an array");
    return elements;
  }
  for (const JsonValue& each : value->array()) {
    std::optional<Element> element;
    if constexpr (std::is_same_v<Element, double>)
      element = number_of(&each);
    else if (each.is_string())
      element = each.string();
    if (element)
      elements.push_back(*element);
    else
      reader.problem(key, "holds " + each.kind_name());
  }
  return elements;
}

std::set<std::string> strings_of(ObjectReader& reader, std::string_view key) {
  const std::vector<std::string> elements = elements_of<std::string>(reader, key);
  return {elements.begin(), elements.end()};
}

std::vector<std::string> keys_of(ObjectReader& reader) {
  std::vector<std::string> keys;
  if (!reader.value().is_object()) return keys;
  for (const JsonValue::Member& member : reader.value().object()) keys.push_back(member.key);
  return keys;
}

std::pair<double, double> range_of(ObjectReader& reader, const std::string& key) {
  const std::vector<double> ends = elements_of<double>(reader, key);
  if (ends.size() == 2) return {ends[0], ends[1]};
  reader.problem(key, "a range has two ends");
  return {};
}

/// Ranges of numbers, and lists of words.
MeasuredValues read_values(ObjectReader reader) {
  MeasuredValues values;
  for (const std::string& key : keys_of(reader)) {
    const JsonValue* list = reader.take(key);
    const bool is_habit = list != nullptr && list->is_array() && !list->array().empty() &&
                          list->array().front().is_string();
    if (is_habit)
      values.habits[key] = strings_of(reader, key);
    else
      values.numbers[key] = range_of(reader, key);
  }
  return values;
}

EvidenceRegime read_regime(ObjectReader& reader) {
  EvidenceRegime regime;
  regime.software = reader.required_string("software");
  regime.device_family = reader.required_string("device_family");
  regime.platforms = strings_of(reader, "platforms");
  regime.sets = strings_of(reader, "sets");
  regime.method = reader.required_text("method");
  ObjectReader ranges = reader.child("ranges");
  for (const std::string& key : keys_of(ranges)) regime.ranges[key] = range_of(ranges, key);
  ObjectReader choices = reader.child("choices");
  for (const std::string& key : keys_of(choices)) regime.choices[key] = strings_of(choices, key);
  ObjectReader values = reader.child("values");
  for (std::size_t axis = 0; axis < num_valued_axes; ++axis)
    regime.values[axis] = read_values(values.child(axis_names[axis]));
  values.reject_unknown_keys();
  regime.residuals = elements_of<double>(reader, "residuals");
  if (regime.residuals.empty())
    reader.problem("residuals", "a regime without residuals says nothing");
  std::ranges::sort(regime.residuals);
  reader.reject_unknown_keys();
  return regime;
}

UnseenErrors read_unseen(ObjectReader& reader) {
  UnseenErrors unseen;
  unseen.method = reader.required_text("method");
  ObjectReader sets = reader.child("sets");
  for (const std::string& name : keys_of(sets)) {
    ObjectReader set = sets.child(name);
    UnseenErrors::Set& read = unseen.sets[name];
    read.software = strings_of(set, "software");
    read.residuals = elements_of<double>(set, "residuals");
    if (read.residuals.empty()) set.problem("residuals", "a set without runs says nothing");
    if (set.has("outside_kernels")) {  // files before 0.2 have none
      read.outside_kernels = elements_of<double>(set, "outside_kernels");
      if (read.outside_kernels.size() != read.residuals.size())
        set.problem("outside_kernels", "there is one share for each of the residuals");
    }
    read.experts = set.optional_bool("experts", false);
    set.reject_unknown_keys();
  }
  if (reader.has("profiles")) unseen.profiles = strings_of(reader, "profiles");  // since 0.2
  reader.reject_unknown_keys();
  unseen.find_allowance();
  return unseen;
}

PairErrors read_pairs(ObjectReader& reader) {
  constexpr double most = 10;  // ln of a ratio
  constexpr int most_score = 1'000;
  PairErrors pairs;
  pairs.allowance.base = reader.required_number("same", 0, most);
  pairs.allowance.growth = reader.required_number("moved", 0, most);
  if (pairs.allowance.base <= 0) reader.problem("same", "an allowance is above 0");
  ObjectReader sets = reader.child("sets");
  for (const std::string& name : keys_of(sets)) {
    ObjectReader set = sets.child(name);
    std::vector<double>& scores = pairs.sets[name];
    scores = elements_of<double>(set, "scores");
    if (scores.empty()) set.problem("scores", "a set without pairs says nothing");
    std::ranges::sort(scores);
    if (!scores.empty() && (scores.front() < 0 || scores.back() > most_score))
      set.problem("scores", "a score is from 0 to " + std::to_string(most_score));
    set.reject_unknown_keys();
  }
  reader.reject_unknown_keys();
  const bool all_have_scores =
      std::ranges::none_of(pairs.sets, [](const auto& each) { return each.second.empty(); });
  if (all_have_scores) pairs.find_bounds();
  return pairs;
}

}  // namespace

std::optional<std::filesystem::path> residuals_of(const Library& library) {
  const std::filesystem::path file = library.root / "validation" / residuals_file;
  if (file_type_of(file) == std::filesystem::file_type::not_found) return std::nullopt;
  return file;
}

MeasuredErrors read_evidence(const Library& library) {
  const std::optional<std::filesystem::path> file = residuals_of(library);
  return file ? read_evidence(*file) : MeasuredErrors{};
}

MeasuredErrors read_evidence(const std::filesystem::path& file, ReadFor purpose) {
  return parse_evidence(read_source(file, {purpose}));
}

MeasuredErrors parse_evidence(std::shared_ptr<const SourceText> source) {
  Problems problems;
  JsonValue value = parse_json(std::move(source), problems);
  problems.throw_if_any();
  MeasuredErrors errors;
  {
    ObjectReader reader(value, {}, problems);
    if (reader.required_string("schema") != schema_name)
      reader.problem("schema", "this file holds no residuals that this version reads",
                     "write it again with windtunnel calibrate --residuals");
    const JsonValue* const list = reader.require("regimes");
    const std::string wrong = list == nullptr ? "" : "is " + list->kind_name() + ", not an array";
    for (ObjectReader& regime : reader.entries("regimes", wrong, 0))
      errors.regimes.push_back(read_regime(regime));
    if (std::optional<ObjectReader> unseen = reader.optional_child("unseen"))
      errors.unseen = read_unseen(*unseen);
    if (std::optional<ObjectReader> pairs = reader.optional_child("pairs"))
      errors.pairs = read_pairs(*pairs);
    reader.reject_unknown_keys();
  }
  problems.throw_if_any();
  return errors;
}

std::string evidence_json(const MeasuredErrors& errors) {
  const auto unseen_set = [](const UnseenErrors::Set& set) {
    const bool has_shares = !set.outside_kernels.empty();
    return object_of(
        {{"software", array_of(set.software)},
         {"experts", only_if(set.experts, JsonValue(true))},
         {"residuals", residuals_value(set.residuals)},
         {"outside_kernels", only_if(has_shares, residuals_value(set.outside_kernels))}});
  };
  const auto pair_set = [](const std::vector<double>& scores) {
    return object_of({{"scores", residuals_value(scores)}});
  };
  const UnseenErrors& unseen = errors.unseen;
  const PairErrors& pairs = errors.pairs;
  JsonValue document =
      object_of({{"schema", schema_name}, {"regimes", array_of(errors.regimes, regime_value)}});
  if (!unseen.sets.empty())
    document.set(
        "unseen",
        object_of({{"method", unseen.method},
                   {"sets", object_by_key(unseen.sets, unseen_set)},
                   {"profiles", only_if(!unseen.profiles.empty(), array_of(unseen.profiles))}}));
  if (!pairs.sets.empty())
    document.set("pairs", object_of({{"same", rounded(pairs.allowance.base)},
                                     {"moved", rounded(pairs.allowance.growth)},
                                     {"sets", object_by_key(pairs.sets, pair_set)}}));
  return pretty_text(document) + "\n";
}

}  // namespace windtunnel
