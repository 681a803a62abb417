#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "platform/software_profile.hpp"

namespace windtunnel {

/// Reads a file of platforms/software/, or the same object written inline; docs/platforms.md lists
/// keys and defaults. What is wrong goes to `problems`, and the profile then holds stand-ins.
SoftwareProfile read_software(JsonValue& value, const std::string& pointer, Problems& problems);

/// Which release of a stack the values of a profile are.
struct SoftwareRelease {
  std::string name;  ///< as asked for, or the newest that is known: "26.08"
  std::string
      known_from;  ///< the entry that holds for it: "26.06"; empty where it is older than all of them
  std::string description;  ///< of that entry
  bool is_newest = false;   ///< nothing is known of a newer one
};
/// Of a profile that was read; nothing where it does not tell releases apart.
std::optional<SoftwareRelease> release_of(const JsonValue& software);

}  // namespace windtunnel
