#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "core/json_value.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// A text, a number, a truth value or a time in seconds as a JSON value.
template <class Value>
JsonValue json_of(const Value& value) {
  if constexpr (std::is_same_v<Value, JsonValue>)
    return value;
  else if constexpr (std::is_same_v<Value, Seconds>)
    return JsonValue(value / Seconds{1});
  else if constexpr (std::is_integral_v<Value> && !std::is_same_v<Value, bool>)
    return JsonValue(static_cast<std::int64_t>(value));
  else if constexpr (std::is_arithmetic_v<Value>)
    return JsonValue(value);
  else
    return JsonValue(std::string(value));
}

/// A member of a JSON object.
struct JsonMember {
  template <class Value>
  JsonMember(std::string name, const Value& content)
      : key(std::move(name)), value(json_of(content)) {}
  /// Left out of the object where there is no value.
  template <class Value>
  JsonMember(std::string name, const std::optional<Value>& content) : key(std::move(name)) {
    if (content) value = json_of(*content);
  }
  std::string key;
  std::optional<JsonValue> value;
};

inline void add_members(JsonValue& object, std::initializer_list<JsonMember> members) {
  for (const JsonMember& member : members)
    if (member.value) object.set(member.key, *member.value);
}
/// object_of({{"schema", "windtunnel/job-v1"}, {"gpus", 512}, {"cost", optional_cost}})
inline JsonValue object_of(std::initializer_list<JsonMember> members) {
  JsonValue object(JsonValue::Object{});
  add_members(object, members);
  return object;
}

}  // namespace windtunnel
