#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/enum_array.hpp"
#include "core/mapped.hpp"
#include "core/object_reader.hpp"
#include "units/quantity.hpp"

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

/// True for the columns of every table of plans or points: time and tokens/s.
inline bool is_always_shown(Objective objective) {
  return objective == Objective::time || objective == Objective::tokens_per_second;
}

/// Memory that a recommended plan must leave free on every GPU, in addition to what it is predicted to need.
struct MemoryMargin {
  /// Half of the 90 % interval of the memory account on A100, ±5 %: docs/memory.md, section 4.
  static constexpr double default_share = 0.05;

  double share = default_share;  ///< of what is needed
  Bytes amount{};                ///< on top of the share
};

/// Rule that assigns GPUs to the ranks of searched plans.
enum class PlacementChoice {
  megatron,  ///< rank order tensor, data, pipeline
  search,    ///< the search itself
};

/// Values of keys of a plan by the key's name, as Key::get has them. A key that is not there was not given.
using SearchLists = std::map<std::string, std::vector<int>, std::less<>>;

/// Reads `supports` of a software profile: all values that the stack can run of the keys it lists, written as the lists of a `search`
/// block are. What is not listed is not limited. By default `rank` tries no others.
SearchLists read_supported(ObjectReader reader);

/// The `search` block of a scenario: the values that `rank` tries for each key of a plan.
struct SearchBlock {
  /// By name of the key, as Key::get has them. A key that is not there was not given.
  SearchLists values;
  MemoryMargin memory_margin;
  bool surely_fits =
      false;  ///< plans at risk, and those whose memory is a lower bound, are left out
  PlacementChoice placement = PlacementChoice::megatron;
  Objective objective = Objective::time;

  /// True if several values of the key are tried.
  bool varies(std::string_view name) const { return value_in(values, name, {}).size() > 1; }
};

/// Reads the `search` block. `memory_margin` is a share, "5 %", or a size, "2 GiB".
SearchBlock read_search(ObjectReader reader);

}  // namespace windtunnel
