#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>

namespace windtunnel {

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

}  // namespace windtunnel
