#pragma once

#include <string>

#include "core/json_value.hpp"
#include "core/problem.hpp"
#include "memory/memory_correction.hpp"

namespace windtunnel {

/// The file's text: `{"schema": "windtunnel/memory-correction-v1", "software": …, "quantity": …, "sets": […], "held_out": {…},
/// "features": […], "mean": […], "scale": […], "hidden": [[…]], "output": […], "most": …}`.
std::string memory_correction_json(const MemoryCorrection& correction);

/// Reads what memory_correction_json() wrote. Adds every problem found.
MemoryCorrection read_memory_correction(JsonValue& value, const std::string& pointer,
                                        Problems& problems);

}  // namespace windtunnel
