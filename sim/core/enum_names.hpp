#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Enumerators under their own names. Files, reports and messages call a value what its declaration calls it, so no list of names
/// stands next to a declaration:
///
///   enum class Recompute { none, selective, full };
///   name_of(Recompute::full)   // "full"
///   enumerators<Recompute>()   // all three, in the order of their declaration
///   all_names<Recompute>()     // {{"none", Recompute::none}, ...}, from which a reader chooses
///   enumerator_named<Recompute>("full")            // Recompute::full; nothing for other words
///   dashed_name(CollectiveOperation::all_reduce)   // "all-reduce"
///
/// An enumeration with other names declares a name_of() of its own, which the compiler prefers. Enumerators must count from 0.
namespace windtunnel {

template <class Value>
using Names = std::vector<std::pair<std::string, Value>>;

namespace detail {

/// "full" of Recompute::full; empty where no enumerator has the value. __PRETTY_FUNCTION__ of GCC and Clang holds
/// "value = windtunnel::Recompute::full", and "value = (windtunnel::Recompute)3" where there is no such enumerator.
template <auto value>
constexpr std::string_view spelling() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("value = "));
  text = text.substr(0, text.find_first_of(";]"));
  text.remove_prefix(text.find_last_of(":)") + 1);
  return text.front() >= '0' && text.front() <= '9' ? std::string_view() : text;
}

/// The same, ended by a zero.
template <auto value>
inline constexpr auto enumerator_name = [] {
  constexpr std::string_view text = spelling<value>();
  std::array<char, text.size() + 1> letters{};
  for (std::size_t i = 0; i < text.size(); ++i) letters[i] = text[i];
  return letters;
}();

template <class Enum, std::size_t first = 0>
constexpr std::size_t count_enumerators() {
  if constexpr (spelling<static_cast<Enum>(first)>().empty())
    return first;
  else
    return count_enumerators<Enum, first + 1>();
}

template <class Enum>
inline constexpr auto enumerator_names = []<std::size_t... i>(std::index_sequence<i...>) {
  return std::array{static_cast<const char*>(enumerator_name<static_cast<Enum>(i)>.data())...};
}
(std::make_index_sequence<count_enumerators<Enum>()>());

}  // namespace detail

template <class Enum>
requires std::is_enum_v<Enum>
constexpr const char* name_of(Enum value) {
  return detail::enumerator_names<Enum>.at(static_cast<std::size_t>(value));
}

template <class Enum>
constexpr auto enumerators() {
  std::array<Enum, detail::enumerator_names<Enum>.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Enum>(i);
  return all;
}

template <class Enum>
constexpr std::optional<Enum> enumerator_named(std::string_view name) {
  for (const Enum value : enumerators<Enum>())
    if (name == name_of(value)) return value;
  return std::nullopt;
}

template <class Enum>
std::string dashed_name(Enum value) {
  std::string name = name_of(value);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

template <class Enum>
Names<Enum> all_names() {
  Names<Enum> all;
  for (const Enum value : enumerators<Enum>())
    all.emplace_back(detail::enumerator_names<Enum>[all.size()], value);
  return all;
}

}  // namespace windtunnel
