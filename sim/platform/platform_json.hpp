#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/json_value.hpp"
#include "core/object_reader.hpp"
#include "platform/device.hpp"
#include "platform/platform.hpp"
#include "platform/software_profile.hpp"

namespace windtunnel {

using Sources = std::map<std::string, Source>;

/// Member "source" of an object of a device, platform or software file, for the numbers that stand
/// in that object itself: one text for all of them, or an object key -> text with "*" for the keys
/// it does not name. A number without a source is a problem, and so is a source of a key that is
/// not there. Results are keyed `prefix` + key.
///
///   "nics": 4, "nic_rate": "200 Gbps", "nic_efficiency": 0.85,
///   "source": {"nic_efficiency": "fitted: vtrain-a100-multi-node (85 GB/s a node)", "*":
///   "datasheet: DGX A100"}
///
/// Defaults need no source (their documentation is it); a number given by --set is `assumed`.
Sources read_sources(ObjectReader& reader, const std::string& prefix = {});

/// Path of an entry's reader within the object around its list: "zfp/0/".
inline std::string place_in(const ObjectReader& outer, const ObjectReader& entry) {
  return entry.pointer().substr(outer.pointer().size() + 1) + "/";
}

/// The end of an object all of whose keys were asked for: adds the sources of its numbers, and reports keys that are not known.
inline void end_object(ObjectReader& reader, const std::string& prefix, Sources& sources) {
  sources.merge(read_sources(reader, prefix));
  reader.reject_unknown_keys();
}

/// True for a number, an amount such as "25 GB/s", or a list that holds one: values that need a source.
bool carries_number(const JsonValue& value);

/// Gives the number `key` of `object` its own source; others keep theirs.
void set_source(JsonValue& object, const std::string& key, const std::string& source);

/// Takes "$schema" and "description"; neither says anything to a model.
std::string read_preamble(ObjectReader& reader);

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

/// The release of a stack that a profile's values belong to.
struct SoftwareRelease {
  std::string name;  ///< as asked for, or the newest that is known: "26.08"
  std::string
      known_from;  ///< the entry that holds for it: "26.06"; empty where it is older than all of them
  std::string description;  ///< of that entry
  bool is_newest = false;   ///< nothing is known of a newer one
};
/// The release of a profile that was read; nothing if it does not distinguish releases.
std::optional<SoftwareRelease> release_of(const JsonValue& software);

/// No node has more GPUs, network cards or rails.
inline constexpr int most_node_parts = 1024;

/// Bounds of an efficiency or factor in these files.
inline constexpr double least_ratio = 1e-3, most_factor = 1e3;

/// Reads a file of platforms/, or the same object written inline; docs/platforms.md lists the keys. Devices are in place of their names already
/// (ScenarioFiles::expand()); a name that is left could not be found, which has been said. What is wrong goes to `problems`.
/// `read_before`: a platform whose devices were read from the same values, which are not read again.
Platform read_platform(JsonValue& value, const std::string& pointer, Problems& problems,
                       const Platform* read_before = nullptr);

}  // namespace windtunnel
