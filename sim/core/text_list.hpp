#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>

namespace windtunnel {

/// All before the first line end.
inline std::string first_line_of(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

/// Joins `to_text(item)` of all items with the separator: joined(words, " ").
template <class Items, class ToText = std::identity>
std::string joined(const Items& items, const std::string& separator, const ToText& to_text = {}) {
  std::string text;
  bool is_first = true;
  for (const auto& item : items) {
    if (!std::exchange(is_first, false)) text += separator;
    text += to_text(item);
  }
  return text;
}

/// "a, b, c": what `to_text` makes of each item. Of more than `most`, the first ones and `rest`.
template <class Items, class ToText = std::identity>
std::string listed(const Items& items, const ToText& to_text = {},
                   std::size_t most = std::numeric_limits<std::size_t>::max(),
                   const char* rest = ", …") {
  std::string list;
  std::size_t count = 0;
  for (const auto& item : items) {
    if (count == most) return list + rest;
    if (count++ > 0) list += ", ";
    list += to_text(item);
  }
  return list;
}

/// "a, b or c"
template <class Items>
std::string alternatives(const Items& items) {
  std::string text;
  std::size_t left = items.size();
  for (const auto& item : items) {
    text += (left == items.size() ? "" : left == 1 ? " or " : ", ") + std::string(item);
    --left;
  }
  return text;
}

}  // namespace windtunnel
