#include <utility>

#include "scenario/key_table.hpp"

namespace windtunnel {

std::string axis_label(const std::string& pointer) {
  for (const Key& key : key_table())
    if (key.pointer == pointer)
      return key.label() + (key.unit.empty() ? "" : " (" + key.unit + ")");
  return pointer;
}

void read_value(ObjectReader& reader, const Key& key, PlanChoice& choice) {
  const KeyValue& value = key.value;
  const std::string name = key.name();
  const int fallback = value.get(choice);
  if (key.absent == Absent::derived && !reader.has(name)) {
    reader.set_default(name, nullptr);  // keeps its place until it is derived
  } else if (value.kind == KeyValue::Kind::whole_number) {
    value.set(choice, key.absent == Absent::fallback
                          ? reader.optional_int(name, fallback, value.least, value.most)
                          : reader.required_int(name, value.least, value.most));
  } else if (value.kind == KeyValue::Kind::flag) {
    value.set(choice, reader.optional_bool(name, fallback == 1) ? 1 : 0);
  } else {
    std::vector<std::pair<std::string, int>> places;
    for (const std::string& each : value.words)
      places.emplace_back(each, static_cast<int>(places.size()));
    value.set(choice, reader.optional_enum<int>(name, fallback, places));
  }
}

void read_keys(ObjectReader& reader, PlanChoice& choice, const SoftwareProfile& software) {
  for (const Key& key : key_table()) {
    if (!key.pointer.starts_with(reader.pointer() + "/")) continue;
    if (key.fallback) key.fallback(choice, software);
    if (key.read)
      key.read(reader, key, choice);
    else if (key.value.kind == KeyValue::Kind::other)
      reader.take(key.name());
    else
      read_value(reader, key, choice);
  }
}

void reject_misplaced_keys(ObjectReader& reader) {
  const std::string block = reader.pointer() + "/";
  const auto check = [&](const std::string& pointer, const std::string& name) {
    if (pointer == block + name || !reader.has(name)) return;
    reader.take(name);
    reader.problem(name, "unknown key \"" + name + "\"", "did you mean " + pointer + "?");
  };
  for (const Key& key : key_table()) check(key.pointer, key.name());
  check("/nodes", "nodes");
}

std::string text_of(const Key& key, int value) {
  if (key.value.kind == KeyValue::Kind::whole_number) return std::to_string(value);
  if (key.value.kind == KeyValue::Kind::flag) return value == 1 ? "true" : "false";
  return value < 0 ? "as the file has it" : key.value.words.at(static_cast<std::size_t>(value));
}

std::string shown_text(const Key& key, int value) {
  const bool has_words = key.value.kind == KeyValue::Kind::flag && !key.value.words.empty();
  return has_words ? key.value.words.at(static_cast<std::size_t>(value)) : text_of(key, value);
}

}  // namespace windtunnel
