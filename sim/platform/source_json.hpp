#pragma once

#include <map>
#include <string>

#include "core/object_reader.hpp"
#include "platform/device.hpp"

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

/// Where the reader of an entry stands within the object around its list: "zfp/0/".
inline std::string place_in(const ObjectReader& outer, const ObjectReader& entry) {
  return entry.pointer().substr(outer.pointer().size() + 1) + "/";
}

/// The end of an object all of whose keys were asked for: adds the sources of its numbers, and reports keys that are not known.
inline void end_object(ObjectReader& reader, const std::string& prefix, Sources& sources) {
  sources.merge(read_sources(reader, prefix));
  reader.reject_unknown_keys();
}

/// Whether it is a number, an amount such as "25 GB/s", or a list that holds one: what needs a source.
bool carries_number(const JsonValue& value);

/// Gives the number `key` of `object` its own source; others keep theirs.
void set_source(JsonValue& object, const std::string& key, const std::string& source);

/// Takes "$schema" and "description"; neither says anything to a model.
std::string read_preamble(ObjectReader& reader);

}  // namespace windtunnel
