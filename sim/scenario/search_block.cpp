#include "scenario/search_block.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/number_in.hpp"
#include "platform/platform_json.hpp"
#include "scenario/key_table.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr AmountRange most_margin{"0 B", "1 PB"};

/// The list at `key`, or null where there is none; no list, and an empty one, are problems.
const JsonValue::Array* list_at(ObjectReader& reader, const std::string& key,
                                const std::string& of) {
  const JsonValue* list = reader.take(key);
  if (list == nullptr) return nullptr;
  if (list->is_array() && !list->array().empty()) return &list->array();
  reader.problem(key,
                 list->is_array()
                     ? key + " is an empty list"
                     : key + " is " + text_for_message(*list) + ", which is not a list",
                 "write [ ... ] with " + of);
  return nullptr;
}

/// A word or flag, as Key::get has it; nothing, with a problem, for what is neither.
std::optional<int> read_element(const Key& key, const JsonValue& element, const std::string& at,
                                Problems& problems) {
  const bool is_flag = key.value.kind == KeyValue::Kind::flag;
  if (is_flag && element.is_bool()) return std::get<bool>(element.content) ? 1 : 0;
  std::string known;
  for (int i = 0; !is_flag && i <= key.value.most; ++i) {
    if (element.is_string() && element.string() == text_of(key, i)) return i;
    known += (i == 0 ? "" : ", ") + text_of(key, i);
  }
  problems.add(
      {element.origin,
       at,
       text_for_message(element) + (is_flag ? " is no true or false" : " is none of " + known),
       {}});
  return std::nullopt;
}

std::vector<int> read_values(ObjectReader& reader, const Key& key) {
  const std::string name = key.name();
  std::vector<int> values;
  if (key.value.kind == KeyValue::Kind::whole_number) {
    values = reader.optional_int_list(name, key.value.least, key.value.most);
    const JsonValue* list = reader.take(name);
    if (list != nullptr && list->is_array() && list->array().empty())
      reader.problem(name, name + " is an empty list", "leave the key out to try all");
    return values;
  }
  const bool is_flag = key.value.kind == KeyValue::Kind::flag;
  const JsonValue::Array* list = list_at(reader, name, is_flag ? "true or false" : "names");
  const std::string at = pointer_join(reader.pointer(), name);
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i)
    if (const auto value =
            read_element(key, (*list)[i], pointer_join(at, std::to_string(i)), reader.problems()))
      values.push_back(*value);
  return values;
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
  const std::optional<double> number = number_in(text);
  if (!number || *number < 0 || *number > percent) return std::nullopt;
  return *number / percent;
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

SearchLists read_lists(ObjectReader& reader) {
  SearchLists lists;
  for (const SearchKey& searched : search_keys()) {
    std::vector<int> values = read_values(reader, *searched.key);
    if (!values.empty()) lists[searched.key->name()] = std::move(values);
  }
  return lists;
}

}  // namespace

SearchLists read_supported(ObjectReader reader) {
  SearchLists lists = read_lists(reader);
  read_sources(reader);
  reader.reject_unknown_keys();
  return lists;
}

SearchBlock read_search(ObjectReader reader) {
  SearchBlock block;
  block.values = read_lists(reader);
  block.memory_margin = read_margin(reader);
  block.surely_fits = reader.optional_bool("surely_fits", false);
  block.placement = reader.optional_enum("placement", PlacementChoice::megatron);
  block.objective = reader.optional_enum("objective", Objective::time);
  reader.reject_unknown_keys();
  return block;
}

}  // namespace windtunnel
