#pragma once

#include <memory>

#include "core/json_value.hpp"

namespace windtunnel {

/// Parses JSON that other programs wrote. parse_json() guards our own files against mistakes and against what would take for ever to merge;
/// here an object may have any number of keys, and NaN and Infinity, which Python's json module writes, are read as null.
JsonValue parse_foreign_json(std::shared_ptr<const SourceText> source, Problems& problems);

}  // namespace windtunnel
