#pragma once

#include <functional>
#include <iterator>
#include <type_traits>
#include <vector>

namespace windtunnel {

/// A vector of what `make`, a function or a member, makes of each item of a list, as `Made` where its own type is another:
///
///   mapped(rows, &Row::time)                     // {Seconds, Seconds}
///   mapped<std::string>(codecs(), &Codec::name)  // of pointers to text
template <class Made = void, class List, class Make>
auto mapped(List&& list, const Make& make) {
  using Result = std::decay_t<std::invoke_result_t<const Make&, decltype(*std::begin(list))>>;
  std::vector<std::conditional_t<std::is_void_v<Made>, Result, Made>> made;
  for (auto&& item : list) made.emplace_back(std::invoke(make, item));
  return made;
}

/// The value at `key` of a map, or `fallback`.
template <class Map, class Key>
typename Map::mapped_type value_in(const Map& map, const Key& key,
                                   const typename Map::mapped_type& fallback) {
  const auto found = map.find(key);
  return found == map.end() ? fallback : found->second;
}

}  // namespace windtunnel
