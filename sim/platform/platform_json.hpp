#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "core/object_reader.hpp"
#include "platform/device.hpp"
#include "platform/platform.hpp"
#include "platform/software_profile.hpp"

namespace windtunnel {

/// Reads a file of platforms/devices/, or the same object written inline; docs/platforms.md lists
/// the keys. What is wrong goes to `problems`, and the device then holds stand-ins.
Device read_device(JsonValue& value, const std::string& pointer, Problems& problems);

/// Reads `platform/fabric` into a platform that has its nodes. `knows_nodes`: these are what was meant.
void read_fabric(ObjectReader reader, Platform& platform, bool knows_nodes);

/// The value of a key as --set takes it.
std::string text_of(const FabricKey& key, const FabricValue& value);

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

/// No node has more GPUs, network cards or rails.
inline constexpr int most_node_parts = 1024;

/// Reads a file of platforms/, or the same object written inline; docs/platforms.md lists the keys. Devices are in place of their names already
/// (ScenarioFiles::expand()); a name that is left could not be found, which has been said. What is wrong goes to `problems`.
/// `read_before`: a platform whose devices were read from the same values, which are not read again.
Platform read_platform(JsonValue& value, const std::string& pointer, Problems& problems,
                       const Platform* read_before = nullptr);

}  // namespace windtunnel
