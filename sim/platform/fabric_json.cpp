#include "platform/fabric_json.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "core/json_number.hpp"
#include "platform/source_json.hpp"
#include "units/amount_range.hpp"
#include "units/member_reader.hpp"

namespace windtunnel {
namespace {

using Type = FabricKey::Type;

const FabricKind* read_kind(ObjectReader& reader) {
  std::vector<std::pair<std::string, const FabricKind*>> names;
  for (const FabricKind& kind : fabric_kinds()) names.emplace_back(kind.name, &kind);
  return reader.optional_enum<const FabricKind*>("kind", names.front().second, names);
}

std::vector<double> read_numbers(ObjectReader& reader, const FabricKey& key) {
  std::vector<double> numbers;
  const JsonValue* const value = reader.take(key.name);
  if (value == nullptr) return numbers;
  const std::string kind = key.type == Type::wholes ? "whole numbers" : "numbers";
  const std::string suggestion = "write [ ... ] with " + kind + " from " +
                                 canonical_text(JsonValue(key.least)) + " to " +
                                 canonical_text(JsonValue(key.most));
  if (!value->is_array()) {
    reader.problem(key.name, key.name + " is " + text_for_message(*value) + ", which is not a list",
                   suggestion);
    return numbers;
  }
  for (const JsonValue& each : value->array()) {
    const std::optional<double> number = number_of(&each);
    const bool is_right = number && *number >= key.least && *number <= key.most &&
                          (key.type == Type::numbers || std::trunc(*number) == *number);
    if (is_right) {
      numbers.push_back(*number);
      continue;
    }
    reader.problem(key.name, key.name + " has " + text_for_message(each) + " in it", suggestion);
    return {};
  }
  return numbers;
}

/// ["leaf0", "spine0", "400 Gbps", 2]: what a cable joins, its rate and, where there are several side by side, how many.
std::vector<FabricCable> read_cables(ObjectReader& reader, const FabricKey& key) {
  std::vector<FabricCable> cables;
  JsonValue* const value = reader.take(key.name);
  if (value == nullptr) return cables;
  const auto refuse = [&](const JsonValue& what) {
    reader.problem(key.name,
                   key.name + " has " + text_for_message(what) + " in it, which is no cable",
                   "write [FROM, TO, RATE] or [FROM, TO, RATE, COUNT] for each, as [\"node0\", "
                   "\"leaf0\", \"400 Gbps\"]");
    return std::vector<FabricCable>{};
  };
  if (!value->is_array()) return refuse(*value);
  for (JsonValue& each : value->array()) {
    constexpr std::size_t without_count = 3;
    if (!each.is_array() || each.array().size() < without_count ||
        each.array().size() > without_count + 1 || !each.array()[0].is_string() ||
        !each.array()[1].is_string() || !each.array()[2].is_string())
      return refuse(each);
    FabricCable cable{each.array()[0].string(), each.array()[1].string(), {}, 1};
    std::string wrong, suggestion;
    const auto rate = parse_quantity<BytesPerSecond>(each.array()[2].string(), wrong, suggestion);
    if (!rate || side_of(*rate) != RangeSide::inside || cable.from == cable.to) return refuse(each);
    cable.bandwidth = *rate;
    if (each.array().size() > without_count) {
      const auto* count = std::get_if<std::int64_t>(&each.array()[without_count].content);
      if (count == nullptr || *count < 1 || static_cast<double>(*count) > key.most)
        return refuse(each);
      cable.count = static_cast<int>(*count);
    }
    cables.push_back(std::move(cable));
  }
  return cables;
}

double number_in(const FabricValue& value) { return std::get<double>(value); }

FabricValue read_value(ObjectReader& reader, const FabricKey& key) {
  switch (key.type) {
    case Type::number:
      return reader.optional_number(key.name, number_in(key.fallback), key.least, key.most);
    case Type::whole:
      return static_cast<double>(reader.optional_int(
          key.name, static_cast<int>(number_in(key.fallback)), static_cast<std::int64_t>(key.least),
          static_cast<std::int64_t>(key.most)));
    case Type::yes_no:
      return reader.optional_bool(key.name, number_in(key.fallback) != 0) ? 1.0 : 0.0;
    case Type::word: {
      std::vector<std::pair<std::string, double>> words;
      for (const std::string& word : key.words)
        words.emplace_back(word, static_cast<double>(words.size()));
      return reader.optional_enum<double>(key.name, number_in(key.fallback), words);
    }
    case Type::data_rate:
      return given_quantity<BytesPerSecond>(reader, key.name).value_or(BytesPerSecond{0}).value();
    case Type::numbers:
    case Type::wholes:
      return read_numbers(reader, key);
    case Type::cables:
      return read_cables(reader, key);
  }
  WT_UNREACHABLE();
}

std::string exact(double number) { return canonical_text(JsonValue(number)); }
std::string exact_rate(double bytes_per_second) { return exact(bytes_per_second) + " B/s"; }

}  // namespace

void read_fabric(ObjectReader reader, Platform& platform, bool knows_nodes) {
  Fabric& fabric = platform.fabric;
  required(reader, "latency", fabric.latency);
  required(reader, "collective_latency", fabric.collective_latency);
  fabric.kind = read_kind(reader);
  bool are_sound = true;
  for (const FabricKey& key : fabric.kind->keys) {
    fabric.values[key.name] = read_value(reader, key);
    are_sound = are_sound && reader.are_sound({key.name});
  }
  end_object(reader, "fabric/", platform.sources);
  if (!are_sound) return;
  Platform keys_alone;
  keys_alone.fabric = fabric;
  if (fabric.kind->problem)
    if (const auto [key, problem] = fabric.kind->problem(knows_nodes ? platform : keys_alone);
        !problem.empty())
      reader.problem(key, problem);
}

std::string text_of(const FabricKey& key, const FabricValue& value) {
  if (const auto* list = std::get_if<std::vector<double>>(&value)) {
    std::string text;
    for (const double number : *list) text += (text.empty() ? "[" : ", ") + exact(number);
    return text + "]";
  }
  if (const auto* cables = std::get_if<std::vector<FabricCable>>(&value)) {
    JsonValue::Array rows;
    for (const FabricCable& cable : *cables)
      rows.emplace_back(JsonValue::Array{JsonValue(cable.from), JsonValue(cable.to),
                                         JsonValue(exact_rate(cable.bandwidth.value())),
                                         JsonValue(std::int64_t{cable.count})});
    return canonical_text(JsonValue(std::move(rows)));
  }
  const double number = number_in(value);
  switch (key.type) {
    case Type::yes_no:
      return number != 0 ? "true" : "false";
    case Type::word:
      return key.words[static_cast<std::size_t>(number)];
    case Type::data_rate:
      return exact_rate(number);
    default:
      return exact(number);
  }
}

}  // namespace windtunnel
