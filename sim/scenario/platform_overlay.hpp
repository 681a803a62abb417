#pragma once

#include <string>

#include "core/json_value.hpp"

namespace windtunnel {

/// Lays what a platform says over the platform that it extends: objects merge, null deletes, everything else replaces. Beside that:
/// - node_types merge one by one, in order; those beyond the base's are added;
/// - sources merge: a number that is changed takes the source that stands beside it, the others keep theirs. One without a source
///   is "assumed".
void overlay_platform(JsonValue& base, const JsonValue& overlay);

/// The same for a software profile. What it says also wins over the base's releases and exceptions (`experts/elsewhere`,
/// `flash_elsewhere`), which are laid over the profile's own values when it is read.
void overlay_software(JsonValue& base, const JsonValue& overlay);

/// Makes a value at `path` of a software profile ("/experts/overlap_exchanges") win over the profile's releases and exceptions.
void win_over_exceptions(JsonValue& software, const std::string& path, const JsonValue& value);

}  // namespace windtunnel
