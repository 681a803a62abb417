#pragma once

#include <string>

#include "core/json_value.hpp"
#include "platform/software_profile.hpp"

namespace windtunnel {

/// Reads a file of platforms/software/, or the same object written inline; docs/platforms.md lists
/// keys and defaults. What is wrong goes to `problems`, and the profile then holds stand-ins.
SoftwareProfile read_software(JsonValue& value, const std::string& pointer, Problems& problems);

}  // namespace windtunnel
