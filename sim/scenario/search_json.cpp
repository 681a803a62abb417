#include "scenario/search_json.hpp"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr int most = 1 << 20;
constexpr AmountRange most_margin{"0 B", "1 PB"};

/// The list at `key`, or null where there is none; no list, and an empty one, are problems.
const JsonValue::Array* list_at(ObjectReader& reader, const char* key, const std::string& of) {
  const JsonValue* list = reader.take(key);
  if (list == nullptr) return nullptr;
  if (list->is_array() && !list->array().empty()) return &list->array();
  reader.problem(key,
                 list->is_array() ? std::string(key) + " is an empty list"
                                  : std::string(key) + " is " + text_for_message(*list) +
                                        ", which is not a list",
                 "write [ ... ] with " + of);
  return nullptr;
}

std::vector<int> read_ints(ObjectReader& reader, const char* key, int least, int largest) {
  std::vector<int> list = reader.optional_int_list(key, least, largest);
  const JsonValue* value = reader.take(key);
  if (value != nullptr && value->is_array() && value->array().empty())
    reader.problem(key, std::string(key) + " is an empty list", "leave the key out to try all");
  return list;
}

template <class Enum>
std::vector<Enum> read_words(ObjectReader& reader, const char* key,
                             const std::vector<std::pair<std::string, Enum>>& names) {
  std::vector<Enum> chosen;
  const JsonValue::Array* list = list_at(reader, key, "names");
  if (list == nullptr) return chosen;
  std::string known;
  for (const auto& [name, value] : names) known += (known.empty() ? "" : ", ") + name;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const JsonValue& word = (*list)[i];
    const std::size_t before = chosen.size();
    for (const auto& [name, value] : names)
      if (word.is_string() && word.string() == name) chosen.push_back(value);
    if (chosen.size() > before) continue;
    const std::string at = pointer_join(pointer_join(reader.pointer(), key), std::to_string(i));
    reader.problems().add({word.origin, at, text_for_message(word) + " is none of " + known, {}});
  }
  return chosen;
}

std::vector<bool> read_flags(ObjectReader& reader, const char* key) {
  std::vector<bool> flags;
  const JsonValue::Array* list = list_at(reader, key, "true or false");
  if (list == nullptr) return flags;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const JsonValue& flag = (*list)[i];
    if (flag.is_bool()) {
      flags.push_back(std::get<bool>(flag.content));
      continue;
    }
    const std::string at = pointer_join(pointer_join(reader.pointer(), key), std::to_string(i));
    reader.problems().add({flag.origin, at, text_for_message(flag) + " is no true or false", {}});
  }
  return flags;
}

/// "5 %" as 0.05.
std::optional<double> parse_share(std::string_view text) {
  const auto trim = [](std::string_view part) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    return part;
  };
  constexpr double percent = 100;
  text = trim(text);
  if (!text.ends_with('%')) return std::nullopt;
  text = trim(text.substr(0, text.size() - 1));
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || !std::isfinite(number) || number < 0 || number > percent) return std::nullopt;
  return number / percent;
}

MemoryMargin read_margin(ObjectReader& reader) {
  constexpr const char* key = "memory_margin";
  reader.set_default(key, std::string("5 %"));
  const JsonValue* value = reader.take(key);
  MemoryMargin margin;
  if (value == nullptr) return margin;
  const std::string wanted = "write \"5 %\" or \"2 GiB\"";
  if (!value->is_string()) {
    reader.problem(
        key,
        "memory_margin is " + text_for_message(*value) + ", which is neither a share nor a size",
        wanted);
    return margin;
  }
  if (const auto share = parse_share(value->string())) return {*share, Bytes{}};
  std::string problem, suggestion;
  const auto amount = parse_quantity<Bytes>(value->string(), problem, suggestion);
  if (amount && side_of(*amount, most_margin) == RangeSide::inside) return {0, *amount};
  if (amount)
    reader.problem(key, "memory_margin is " + text_for_message(*value) + ", which is too large",
                   range_suggestion<Bytes>(most_margin));
  else
    reader.problem(key, "memory_margin is neither a share nor a size: " + problem, wanted);
  return margin;
}

}  // namespace

SearchBlock read_search(ObjectReader reader) {
  SearchBlock block;
  block.tensor = read_ints(reader, "tensor", 1, most);
  block.pipeline = read_ints(reader, "pipeline", 1, most);
  block.data = read_ints(reader, "data", 1, most);
  block.micro_batch = read_ints(reader, "micro_batch", 1, most);
  block.virtual_pipeline = read_ints(reader, "virtual_pipeline", 1, most);
  block.zero_stage = read_ints(reader, "zero_stage", 0, 3);
  block.schedule = read_words<SchedulePtr>(reader, "schedule", schedules_by_name());
  block.recompute = read_words<Recompute>(
      reader, "recompute",
      {{"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}});
  block.sequence_parallel = read_flags(reader, "sequence_parallel");
  block.memory_margin = read_margin(reader);
  block.placement = reader.optional_enum<PlacementChoice>(
      "placement", PlacementChoice::megatron,
      {{"megatron", PlacementChoice::megatron}, {"search", PlacementChoice::search}});
  reader.reject_unknown_keys();
  return block;
}

}  // namespace windtunnel
