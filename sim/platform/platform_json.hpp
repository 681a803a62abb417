#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/json_value.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

/// No node has more GPUs, network cards or rails.
inline constexpr int most_node_parts = 1024;

/// Finds a device by the name a platform file gives, adding a problem at `origin` and `pointer`
/// where there is none.
using DeviceLoader = std::function<std::optional<Device>(
    const std::string& name, const Origin& origin, const std::string& pointer, Problems& problems)>;

/// Reads a file of platforms/, or the same object written inline; docs/platforms.md lists the keys.
/// A "device" is a name for `load_device` or an inline object. What is wrong goes to `problems`.
/// `read_before`: a platform whose devices were read from the same values, which are not read again.
Platform read_platform(JsonValue& value, const std::string& pointer, Problems& problems,
                       const DeviceLoader& load_device, const Platform* read_before = nullptr);

}  // namespace windtunnel
