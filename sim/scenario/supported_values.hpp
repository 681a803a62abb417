#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/object_reader.hpp"

namespace windtunnel {

/// Values of keys of a plan by the key's name, as Key::get has them. A key that is not there was not given.
using SearchLists = std::map<std::string, std::vector<int>, std::less<>>;

/// Reads `supports` of a software profile: all values that the stack can run of the keys it lists, written as the lists of a `search`
/// block are. What is not listed is not limited. `rank` tries no others where it searches everything.
SearchLists read_supported(ObjectReader reader);

}  // namespace windtunnel
