#pragma once

#include <utility>

#include "core/json_value.hpp"

/// Pieces of documents that are written in JSON.
namespace windtunnel {

inline JsonValue empty_object() { return JsonValue(JsonValue::Object{}); }

/// JSON array of `to_value(item)` for each item; `to_value` returns a JsonValue or a type that converts to one.
template <class List, class ToValue>
JsonValue array_of(const List& list, const ToValue& to_value) {
  JsonValue::Array array;
  for (const auto& item : list) array.emplace_back(to_value(item));
  return JsonValue(std::move(array));
}
/// JSON array of strings or numbers.
template <class List>
JsonValue array_of(const List& list) {
  return array_of(list, [](const auto& item) { return item; });
}

/// An object with the keys of a map, or of a list of pairs, each with what `to_value` makes of what belongs to it.
template <class Map, class ToValue>
JsonValue object_by_key(const Map& map, const ToValue& to_value) {
  JsonValue object = empty_object();
  for (const auto& [key, content] : map) object.set(key, JsonValue(to_value(content)));
  return object;
}

}  // namespace windtunnel
