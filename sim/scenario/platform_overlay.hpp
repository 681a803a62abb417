#pragma once

#include "core/json_value.hpp"

namespace windtunnel {

/// Lays what a platform says over the platform that it extends: objects merge, null deletes, everything else replaces. Beside that:
/// - node_types merge one by one, in order; those beyond the base's are added;
/// - sources merge: a number that is changed takes the source that stands beside it, the others keep theirs. One without a source
///   is "assumed".
void overlay_platform(JsonValue& base, const JsonValue& overlay);

}  // namespace windtunnel
