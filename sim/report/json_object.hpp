#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "core/json_build.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// A text, a number, a truth value, a time in seconds, an interval of two times, or bytes (an integer where they are whole) as a JSON value.
/// Integers beyond JSON's range become a string of digits: a rounded seed is another seed.
template <class Value>
JsonValue json_of(const Value& value) {
  if constexpr (std::is_same_v<Value, JsonValue>)
    return value;
  else if constexpr (std::is_same_v<Value, Seconds>)
    return JsonValue(value / Seconds{1});
  else if constexpr (std::is_same_v<Value, std::pair<Seconds, Seconds>>)
    return array_of(std::array{value.first / Seconds{1}, value.second / Seconds{1}});
  else if constexpr (std::is_same_v<Value, Bytes>) {
    constexpr double whole_number_limit = 9007199254740992.0;  // 2^53
    const double number = value / Bytes{1};
    return std::abs(number) <= whole_number_limit && std::trunc(number) == number
               ? JsonValue(static_cast<std::int64_t>(number))
               : JsonValue(number);
  } else if constexpr (std::is_integral_v<Value> && !std::is_same_v<Value, bool>)
    return std::in_range<std::int64_t>(value) ? JsonValue(static_cast<std::int64_t>(value))
                                              : JsonValue(std::to_string(value));
  else if constexpr (std::is_arithmetic_v<Value>)
    return JsonValue(value);
  else
    return JsonValue(std::string(value));
}

/// The value where it is to be written; else none, and the object has no such member.
template <class Value>
std::optional<Value> only_if(bool is_written, Value value) {
  return is_written ? std::optional(std::move(value)) : std::nullopt;
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
