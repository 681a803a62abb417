#include "core/json_value.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/contracts.hpp"
#include "core/number_in.hpp"

namespace windtunnel {
namespace {

/// The first key of `pointer`, unescaped, and what is left; nothing when there is none or it is
/// malformed.
std::optional<std::pair<std::string, std::string_view>> split_pointer(std::string_view pointer) {
  if (!pointer.starts_with('/')) return std::nullopt;
  pointer.remove_prefix(1);
  const std::size_t end = std::min(pointer.find('/'), pointer.size());
  std::string key;
  for (std::size_t i = 0; i < end; ++i) {
    if (pointer[i] != '~') {
      key += pointer[i];
      continue;
    }
    if (++i == end || (pointer[i] != '0' && pointer[i] != '1')) return std::nullopt;
    key += pointer[i] == '0' ? '~' : '/';
  }
  return std::pair{key, pointer.substr(end)};
}

/// Element `key` of `array`: decimal without leading zeros, within the array.
JsonValue* element_at(JsonValue::Array& array, std::string_view key) {
  if (key.empty() || (key.size() > 1 && key.front() == '0')) return nullptr;
  const auto index = number_in<std::size_t>(key);
  return index && *index < array.size() ? &array[*index] : nullptr;
}

}  // namespace

JsonValue::JsonValue(Content its_content, Origin its_origin)
    : content(std::move(its_content)), origin(std::move(its_origin)) {}

JsonValue::Object& JsonValue::object() {
  WT_EXPECT(is_object());
  return std::get<Object>(content);
}

const JsonValue::Object& JsonValue::object() const {
  WT_EXPECT(is_object());
  return std::get<Object>(content);
}

JsonValue::Array& JsonValue::array() {
  WT_EXPECT(is_array());
  return std::get<Array>(content);
}

const JsonValue::Array& JsonValue::array() const {
  WT_EXPECT(is_array());
  return std::get<Array>(content);
}

const std::string& JsonValue::string() const {
  WT_EXPECT(is_string());
  return std::get<std::string>(content);
}

const JsonValue* JsonValue::find(std::string_view key) const {
  const Object* members = std::get_if<Object>(&content);
  if (members == nullptr) return nullptr;
  const auto found = std::find_if(members->begin(), members->end(),
                                  [&](const Member& member) { return member.key == key; });
  return found == members->end() ? nullptr : &found->value;
}

JsonValue* JsonValue::find(std::string_view key) {
  return const_cast<JsonValue*>(std::as_const(*this).find(key));
}

JsonValue& JsonValue::set(std::string_view key, JsonValue value, Origin key_origin) {
  for (Member& member : object()) {
    if (member.key != key) continue;
    member.key_origin = std::move(key_origin);
    member.value = std::move(value);
    return member.value;
  }
  object().push_back({std::string(key), std::move(key_origin), std::move(value)});
  return object().back().value;
}

bool JsonValue::erase(std::string_view key) {
  return is_object() &&
         std::erase_if(object(), [&](const Member& member) { return member.key == key; }) > 0;
}

std::string JsonValue::kind_name() const {
  struct Namer {
    std::string operator()(std::nullptr_t) const { return "null"; }
    std::string operator()(bool) const { return "a boolean"; }
    std::string operator()(std::int64_t) const { return "an integer"; }
    std::string operator()(double) const { return "a number"; }
    std::string operator()(const std::string&) const { return "a string"; }
    std::string operator()(const Array&) const { return "an array"; }
    std::string operator()(const Object&) const { return "an object"; }
  };
  return std::visit(Namer{}, content);
}

void merge_json(JsonValue& base, const JsonValue& overlay) {
  if (!overlay.is_object()) {
    base = overlay;
    return;
  }
  if (!base.is_object()) base = JsonValue(JsonValue::Object{}, overlay.origin);
  for (const JsonValue::Member& member : overlay.object()) {
    if (member.value.is_null()) {
      base.erase(member.key);
      continue;
    }
    JsonValue* target = base.find(member.key);
    if (target == nullptr || !target->is_object() || !member.value.is_object())
      target = &base.set(member.key, JsonValue{}, member.key_origin);
    merge_json(*target, member.value);
  }
}

std::string pointer_join(std::string_view pointer, std::string_view key) {
  std::string joined(pointer);
  joined += '/';
  for (const char c : key) {
    if (c == '~')
      joined += "~0";
    else if (c == '/')
      joined += "~1";
    else
      joined += c;
  }
  return joined;
}

JsonValue* find_at(JsonValue& root, std::string_view pointer) {
  JsonValue* value = &root;
  while (!pointer.empty()) {
    const auto step = split_pointer(pointer);
    if (!step) return nullptr;
    const auto& [key, rest] = *step;
    value = value->is_array() ? element_at(value->array(), key) : value->find(key);
    if (value == nullptr) return nullptr;
    pointer = rest;
  }
  return value;
}

const JsonValue* find_at(const JsonValue& root, std::string_view pointer) {
  // The other one changes nothing.
  return find_at(const_cast<JsonValue&>(root), pointer);
}

bool set_at(JsonValue& root, std::string_view pointer, JsonValue value) {
  // Found before anything is changed: a pointer that fails must not leave objects behind.
  std::vector<std::string> keys;
  for (std::string_view rest = pointer; !rest.empty();) {
    const auto step = split_pointer(rest);
    if (!step || keys.size() == max_json_depth) return false;
    keys.push_back(step->first);
    rest = step->second;
  }
  JsonValue* target = &root;
  std::size_t depth = 0;
  for (; depth < keys.size() && !target->is_null(); ++depth) {
    JsonValue* next =
        target->is_array() ? element_at(target->array(), keys[depth]) : target->find(keys[depth]);
    if (next == nullptr && !target->is_object()) return false;
    if (next == nullptr) break;
    target = next;
  }
  for (; depth < keys.size(); ++depth) {
    if (target->is_null()) *target = JsonValue(JsonValue::Object{}, value.origin);
    target = &target->set(keys[depth], JsonValue{}, value.origin);
  }
  *target = std::move(value);
  return true;
}

bool erase_at(JsonValue& root, std::string_view pointer) {
  const std::size_t last = pointer.rfind('/');
  if (last == std::string_view::npos) return false;
  JsonValue* const parent = find_at(root, pointer.substr(0, last));
  const auto key = split_pointer(pointer.substr(last));
  return parent != nullptr && key && parent->erase(key->first);
}

std::optional<double> number_of(const JsonValue* value) {
  if (value == nullptr || !value->is_number()) return std::nullopt;
  if (value->is_integer()) return static_cast<double>(std::get<std::int64_t>(value->content));
  return std::get<double>(value->content);
}

}  // namespace windtunnel
