#pragma once

#include <string>
#include <vector>

namespace windtunnel {

/// Where a scenario has values by its own keys; without what lies inside model, platform, software and the entries of compression.
const std::vector<std::string>& known_pointers();

/// True for a JSON pointer that a scenario can have a value at. What lies inside model, platform, software and a
/// compression entry is not looked at: their own readers know.
bool is_known_pointer(const std::string& pointer);

/// The known pointer that is most like `text`, which may also be written "parallel.tensor" or "tensor"; or empty.
std::string closest_known_pointer(const std::string& text);

}  // namespace windtunnel
