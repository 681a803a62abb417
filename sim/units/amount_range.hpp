#pragma once

#include <string>

#include "units/quantity.hpp"

namespace windtunnel {

/// Range of an amount in a file, as messages and docs/scenario.schema.json (x-minimum, x-maximum) write it. Generous: it keeps
/// slips of a unit out, and sums finite.
struct AmountRange {
  const char* least;
  const char* most;
};

/// The range of every amount of a kind that has none of its own.
template <class Amount>
constexpr AmountRange usual_range();
template <>
constexpr AmountRange usual_range<Bytes>() {
  return {"1 B", "1 PB"};
}
template <>
constexpr AmountRange usual_range<Seconds>() {
  return {"0 s", "10 s"};
}
template <>
constexpr AmountRange usual_range<BytesPerSecond>() {
  return {"1 Mbps", "100 TB/s"};
}
template <>
constexpr AmountRange usual_range<FlopsPerSecond>() {
  return {"1 GFLOPS", "1 EFLOPS"};
}

/// Position of an amount relative to a range.
enum class RangeSide { below, inside, above };
template <class Amount>
RangeSide side_of(Amount amount, AmountRange range = usual_range<Amount>());

/// The nearest amount that the range allows.
template <class Amount>
Amount clamped(Amount amount, AmountRange range = usual_range<Amount>());

/// "write a data rate from 1 Mbps to 100 TB/s"
template <class Amount>
std::string range_suggestion(AmountRange range = usual_range<Amount>());

}  // namespace windtunnel
