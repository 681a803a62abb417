#pragma once

#include "core/enum_array.hpp"

namespace windtunnel {

/// Measure by which one plan, or one point of a sweep, is better than another.
enum class Objective {
  time,               ///< of an iteration, s; less is better
  tokens_per_second,  ///< more is better
  cost_per_token,     ///< job/price for every GPU, in its currency
  energy_per_token,   ///< job/power of every GPU and node, J
  days,               ///< that the job's steps take, without starts and failures
};
/// "s", "tokens/s", "per token", "J/token", "days"
inline const char* unit_of(Objective objective) {
  constexpr EnumArray<Objective, const char*> units{"s", "tokens/s", "per token", "J/token",
                                                    "days"};
  return units[objective];
}

/// Of what every table of plans or points has: time and tokens/s.
inline bool is_always_shown(Objective objective) {
  return objective == Objective::time || objective == Objective::tokens_per_second;
}

}  // namespace windtunnel
