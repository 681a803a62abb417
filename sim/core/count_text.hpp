#pragma once

#include <cstdint>
#include <string>

namespace windtunnel {

/// "1 point", "2 points", "2 microbatches"
inline std::string count_text(std::int64_t number, const std::string& thing) {
  return std::to_string(number) + " " + thing +
         (number == 1             ? ""
          : thing.ends_with("ch") ? "es"
                                  : "s");
}
inline std::string count_text(std::size_t number, const std::string& thing) {
  return count_text(static_cast<std::int64_t>(number), thing);
}
inline std::string count_text(int number, const std::string& thing) {
  return count_text(std::int64_t{number}, thing);
}

inline const char* is_or_are(std::size_t number) { return number == 1 ? "is" : "are"; }

}  // namespace windtunnel
