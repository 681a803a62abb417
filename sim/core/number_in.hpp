#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace windtunnel {

/// The decimal number that is the whole of `word`: number_in("2.5"), number_in<int>("8"). Nothing where there is more or less than a number
/// ("8 GB", ""), where its type does not hold it, or it is not finite.
template <class Number = double>
std::optional<Number> number_in(std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>)
    if (!std::isfinite(number)) return std::nullopt;
  return number;
}

}  // namespace windtunnel
