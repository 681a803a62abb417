#pragma once

#include <string>

#include "core/json_value.hpp"
#include "platform/device.hpp"

namespace windtunnel {

/// Reads a file of platforms/devices/, or the same object written inline; docs/platforms.md lists
/// the keys. What is wrong goes to `problems`, and the device then holds stand-ins.
Device read_device(JsonValue& value, const std::string& pointer, Problems& problems);

}  // namespace windtunnel
