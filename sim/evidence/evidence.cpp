#include "evidence/evidence.hpp"

#include <algorithm>
#include <iterator>

#include "core/text_list.hpp"
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
  choices["compression"] = is_compressed ? "some" : "none";
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
  return source.substr(0, source.find("never fitted on")).find(set) != std::string::npos;
}

std::vector<FittedNumber> fitted_numbers(const std::map<std::string, Source>& sources,
                                         const std::string& file) {
  std::vector<FittedNumber> numbers;
  for (const auto& [key, source] : sources)
    if (source.evidence == Evidence::fitted) numbers.push_back({file + ": " + key, source.text});
  return numbers;
}

std::vector<FittedNumber> fitted_numbers(const Scenario& scenario) {
  std::vector<FittedNumber> numbers;
  const auto add = [&](const std::map<std::string, Source>& sources, const std::string& file) {
    std::ranges::copy(fitted_numbers(sources, file), std::back_inserter(numbers));
  };
  std::set<std::string> devices;
  for (const NodeType& node : scenario.nodes) devices.insert(node.device.name);
  for (const NodeType& type : scenario.platform.node_types)  // nodes do not carry sources
    if (devices.erase(type.device.name) > 0) add(type.device.sources, "device " + type.device.name);
  add(scenario.platform.sources, "platform " + scenario.platform.name);
  add(scenario.software.sources, "software " + scenario.software.name);
  return numbers;
}

ScenarioTraits traits_of(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  ScenarioTraits traits;
  traits.software = scenario.software.name;
  traits.device_family = device_family(scenario.nodes);
  traits.platform = scenario.platform.name;
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

Beyond EvidenceRegime::beyond(const ScenarioTraits& traits) const {
  Beyond beyond;
  for (std::size_t axis = 0; axis < num_valued_axes; ++axis) {
    ValueDifferences differences = values[axis].differences(traits.values[axis]);
    beyond.reasons[axis] = std::move(differences.used);
    if (axis == static_cast<std::size_t>(EvidenceAxis::stack))
      beyond.unused_of_stack = differences.unused;
  }
  beyond.of(EvidenceAxis::job) = job_beyond(*this, traits);
  return beyond;
}

}  // namespace windtunnel
