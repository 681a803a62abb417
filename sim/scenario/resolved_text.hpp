#pragma once

#include <string>

#include "core/json_value.hpp"

namespace windtunnel {

/// Makes the tree that was read into one that can be read again on its own: nulls, which mean absence, go; numbers of
/// platform and software that are defaults or came from --set get the `source` entry that their files demand.
void make_self_contained(JsonValue& tree);

/// The resolved scenario as JSON with comments, each line saying where its value comes from:
///
///   "training": {              // base.json:7
///     "global_batch": 1536,    // scenario.json:4
///     "optimizer": "adam",     // default
///     "micro_batch": 4,        // --set
std::string resolved_text(const JsonValue& resolved);

/// Hash of what is simulated: 32 hexadecimal digits. Left out: $schema, sweep, search, names (but a device's, which the
/// software profile refers to), descriptions and sources. Written and defaulted values count alike.
std::string resolved_hash(const JsonValue& resolved);

}  // namespace windtunnel
