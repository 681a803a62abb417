#pragma once

#include <array>
#include <cstddef>

#include "core/enum_names.hpp"

namespace windtunnel {

/// One value for each enumerator, found by it:
///
///   EnumArray<Part, Seconds> times{};
///   times[Part::codec] += 3_us;
template <class Enum, class Value>
struct EnumArray : std::array<Value, enumerators<Enum>().size()> {
  using Base = std::array<Value, enumerators<Enum>().size()>;
  using Base::operator[];
  constexpr Value& operator[](Enum key) { return Base::operator[](static_cast<std::size_t>(key)); }
  constexpr const Value& operator[](Enum key) const {
    return Base::operator[](static_cast<std::size_t>(key));
  }
};

}  // namespace windtunnel
