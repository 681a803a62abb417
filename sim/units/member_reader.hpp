#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "core/object_reader.hpp"
#include "units/quantity_reader.hpp"
#include "units/unit_table.hpp"

/// A key of a file is one call: its name, the member that it sets, and its limits. The default is what the member has before, so that the
/// struct alone says it.
///
///   required(reader, "kernel", launch.kernel);                  // an amount within the usual range of its kind
///   defaulted(reader, "sharpness", launch.sharpness, 1, 100);   // absent: what the member has, written back for `show --resolved`
///   given(reader, "scales_gradients", stack.scales_gradients);  // absent: what the member has; nothing is written back
namespace windtunnel {

namespace detail {

template <class Value>
concept SomeAmount = requires(Value value) {
  value.value();
};

/// As a file would write it, in the unit that needs the smallest whole number: "2 ms", "46 MiB", "0 s".
template <class Amount>
std::string exact_text(Amount amount) {
  std::string text;
  double fewest = std::numeric_limits<double>::max();
  for (const Unit& unit : unit_table<Amount>().units) {
    const double number = std::round(amount.value() / unit.factor);
    const bool is_exact = number * unit.factor == amount.value();
    if (!is_exact || (number == 0 ? unit.factor != 1 : number >= fewest)) continue;
    fewest = number;
    text = exact_number(number) + " " + unit.name;
  }
  WT_ENSURE(!text.empty());  // a default is a whole number of some unit
  return text;
}

/// Without a fallback the key is there, or required.
template <class Value, class... Limits>
Value read_value(ObjectReader& reader, const std::string& key, const Value* fallback,
                 const Limits&... limits) {
  if constexpr (std::is_same_v<Value, bool> && sizeof...(limits) == 0)
    return reader.optional_bool(key, fallback != nullptr && *fallback);
  else if constexpr (std::is_same_v<Value, int>)
    return fallback ? reader.optional_int(key, *fallback, limits...)
                    : reader.required_int(key, limits...);
  else if constexpr (std::is_same_v<Value, double>)
    return fallback ? reader.optional_number(key, *fallback, limits...)
                    : reader.required_number(key, limits...);
  else if constexpr (SomeAmount<Value>)
    return fallback ? optional_quantity<Value>(reader, key, exact_text(*fallback), limits...)
                    : required_quantity<Value>(reader, key, limits...);
  else
    return fallback ? reader.optional_enum<Value>(key, *fallback, limits...)
                    : reader.required_enum<Value>(key, limits...);
}

}  // namespace detail

template <class Value, class... Limits>
void required(ObjectReader& reader, const std::string& key, Value& member,
              const Limits&... limits) {
  member = detail::read_value<Value>(reader, key, nullptr, limits...);
}

template <class Value, class... Limits>
void defaulted(ObjectReader& reader, const std::string& key, Value& member,
               const Limits&... limits) {
  member = detail::read_value<Value>(reader, key, &member, limits...);
}

template <class Value, class... Limits>
void given(ObjectReader& reader, const std::string& key, Value& member, const Limits&... limits) {
  if (reader.take(key) != nullptr)
    member = detail::read_value<Value>(reader, key, nullptr, limits...);
}
template <class Value, class... Limits>
void given(ObjectReader& reader, const std::string& key, std::optional<Value>& member,
           const Limits&... limits) {
  if (reader.take(key) != nullptr)
    member = detail::read_value<Value>(reader, key, nullptr, limits...);
}

}  // namespace windtunnel
