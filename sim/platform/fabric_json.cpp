#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "core/json_value.hpp"
#include "core/number_in.hpp"
#include "core/text_list.hpp"
#include "platform/platform_json.hpp"
#include "units/amount_range.hpp"
#include "units/member_reader.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using Type = FabricKey::Type;

/// The fault in a number of a list; empty: none.
std::string complaint(const JsonValue& cell, const FabricKey& key) {
  const std::optional<double> number = number_of(&cell);
  const std::string text = text_for_message(cell) + " in " + key.name + " is ";
  if (!number) return text + "no number";
  if (*number < key.least) return text + "too small";
  if (*number > key.most) return text + "too large";
  const bool is_whole = std::trunc(*number) == *number;
  return key.type == Type::wholes && !is_whole ? text + "no whole number" : "";
}

/// Empty where something is wrong.
std::vector<double> read_numbers(ObjectReader& reader, const FabricKey& key) {
  std::vector<double> numbers;
  const JsonValue* const value = reader.take(key.name);
  if (value == nullptr) return numbers;
  const std::string kind = key.type == Type::wholes ? "whole numbers" : "numbers";
  const std::string suggestion = "write [ ... ] with " + kind + " from " + exact_number(key.least) +
                                 " to " + exact_number(key.most);
  if (!value->is_array()) {
    reader.problem(key.name, key.name + " is " + text_for_message(*value) + ", which is not a list",
                   suggestion);
    return numbers;
  }
  bool are_right = true;
  for (std::size_t i = 0; i < value->array().size(); ++i) {
    const JsonValue& cell = value->array()[i];
    const std::string wrong = complaint(cell, key);
    are_right = are_right && wrong.empty();
    if (wrong.empty())
      numbers.push_back(*number_of(&cell));
    else
      reader.problems().add(
          {cell.origin, pointer_join(pointer_join(reader.pointer(), key.name), std::to_string(i)),
           wrong, suggestion});
  }
  return are_right ? numbers : std::vector<double>{};
}

/// ["leaf0", "spine0", "400 Gbps"]: what a cable joins, and its rate; "8 x 400 Gbps" of eight side by side. Nothing where it is something else.
std::optional<FabricCable> read_cable(const JsonValue& row, double most) {
  constexpr std::size_t size = 3;
  if (!row.is_array() || row.array().size() != size ||
      !std::ranges::all_of(row.array(), [](const JsonValue& cell) { return cell.is_string(); }))
    return std::nullopt;
  FabricCable cable{row.array()[0].string(), row.array()[1].string(), {}, 1};
  std::string rate = row.array()[2].string();
  const std::string times = " x ";
  if (const std::size_t at = rate.find(times); at != std::string::npos) {
    cable.count = number_in<int>(rate.substr(0, at)).value_or(0);  // none is refused below
    rate.erase(0, at + times.size());
  }
  std::string wrong, suggestion;
  const auto bandwidth = parse_quantity<BytesPerSecond>(rate, wrong, suggestion);
  if (!bandwidth || side_of(*bandwidth) != RangeSide::inside || cable.count < 1 ||
      cable.count > most || cable.from == cable.to)
    return std::nullopt;
  cable.bandwidth = *bandwidth;
  return cable;
}

/// Empty where something is wrong.
std::vector<FabricCable> read_cables(ObjectReader& reader, const FabricKey& key) {
  std::vector<FabricCable> cables;
  const JsonValue* const value = reader.take(key.name);
  if (value == nullptr) return cables;
  const auto refuse = [&](const JsonValue& what) {
    reader.problem(key.name,
                   key.name + " has " + text_for_message(what) + " in it, which is no cable",
                   "write [FROM, TO, RATE] for each, as [\"node0\", \"leaf0\", \"400 Gbps\"] or "
                   "[\"leaf0\", \"spine0\", \"8 x 400 Gbps\"]");
    return std::vector<FabricCable>{};
  };
  if (!value->is_array()) return refuse(*value);
  for (const JsonValue& row : value->array()) {
    std::optional<FabricCable> cable = read_cable(row, key.most);
    if (!cable) return refuse(row);
    cables.push_back(std::move(*cable));
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

}  // namespace

void read_fabric(ObjectReader reader, Platform& platform, bool knows_nodes) {
  Fabric& fabric = platform.fabric;
  required(reader, "latency", fabric.latency);
  required(reader, "collective_latency", fabric.collective_latency);
  Names<const FabricKind*> kinds;
  for (const FabricKind& kind : fabric_kinds()) kinds.emplace_back(kind.name, &kind);
  fabric.kind = reader.optional_enum("kind", kinds.front().second, kinds);
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
  if (const auto* list = std::get_if<std::vector<double>>(&value))
    return "[" + listed(*list, exact_number) + "]";
  if (const auto* cables = std::get_if<std::vector<FabricCable>>(&value)) {
    JsonValue::Array rows;
    for (const FabricCable& cable : *cables)
      rows.emplace_back(JsonValue::Array{
          JsonValue(cable.from), JsonValue(cable.to),
          JsonValue(std::to_string(cable.count) + " x " + exact_amount(cable.bandwidth))});
    return canonical_text(JsonValue(std::move(rows)));
  }
  const double number = number_in(value);
  switch (key.type) {
    case Type::yes_no:
      return number != 0 ? "true" : "false";
    case Type::word:
      return key.words[static_cast<std::size_t>(number)];
    case Type::data_rate:
      return exact_amount(BytesPerSecond{number});
    default:
      return exact_number(number);
  }
}

}  // namespace windtunnel
