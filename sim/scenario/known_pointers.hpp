#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scenario/scenario.hpp"

namespace windtunnel {

/// Where a scenario has values by its own keys; without what lies inside model, platform, software and the entries of compression.
const std::vector<std::string>& known_pointers();

/// True for a JSON pointer that a scenario can have a value at. What lies inside model, platform, software and a
/// compression entry is not looked at: their own readers know.
bool is_known_pointer(const std::string& pointer);

/// The known pointer that is most like `text`, which may also be written "parallel.tensor" or "tensor"; or empty.
std::string closest_known_pointer(const std::string& text);

/// What `--set` can change in a scenario: JSON pointers, each with the value there as `--set` takes it. Lists of plain values are one value;
/// what stands nowhere yet, as a compression, is null. Texts that only describe are left out.
///
///   /model=gpt-39b
///   /model/layers=48
///   /platform/node_types/0/nic_rate=200 Gbps
///   /compression/data_gradients=null
std::vector<std::pair<std::string, std::string>> settable_values(const Scenario& scenario,
                                                                 const Library& library);

}  // namespace windtunnel
