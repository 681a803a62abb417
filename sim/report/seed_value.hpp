#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/json_value.hpp"

namespace windtunnel {

/// A whole number where JSON's integers reach, else its digits as text: a seed that is rounded is another seed.
inline JsonValue seed_value(std::uint64_t seed) {
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return seed <= largest ? JsonValue(static_cast<std::int64_t>(seed))
                         : JsonValue(std::to_string(seed));
}

}  // namespace windtunnel
