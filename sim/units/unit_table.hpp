#pragma once

#include <string>
#include <vector>

#include "units/quantity.hpp"

namespace windtunnel::detail {

/// One accepted spelling of a unit.
struct Unit {
  std::string name;
  double factor;  ///< one of it in SI base amounts
};

/// Notation of one kind of amount: its name and its units.
struct UnitTable {
  std::string kind;     ///< "a rate in bytes per second"
  std::string example;  ///< "400 Gbps"
  std::string usual;    ///< the units worth naming in a message
  std::vector<Unit> units;
  bool any_case;  ///< whether letters in the wrong case may be accepted at all
};

template <class Amount>
const UnitTable& unit_table();
template <>
const UnitTable& unit_table<Bytes>();
template <>
const UnitTable& unit_table<Seconds>();
template <>
const UnitTable& unit_table<BytesPerSecond>();
template <>
const UnitTable& unit_table<FlopsPerSecond>();

/// Units of bits, which no amount is written in; known for the sake of messages.
const UnitTable& bit_table();

}  // namespace windtunnel::detail
