#pragma once

#include <utility>

#include "core/json_value.hpp"

/// Pieces of documents that are written in JSON.
namespace windtunnel {

inline JsonValue empty_object() { return JsonValue(JsonValue::Object{}); }

/// What `to_value` makes of each item, a JsonValue or what one is made of.
template <class List, class ToValue>
JsonValue array_of(const List& list, const ToValue& to_value) {
  JsonValue::Array array;
  for (const auto& item : list) array.emplace_back(to_value(item));
  return JsonValue(std::move(array));
}
/// Of texts or numbers.
template <class List>
JsonValue array_of(const List& list) {
  return array_of(list, [](const auto& item) { return item; });
}

}  // namespace windtunnel
