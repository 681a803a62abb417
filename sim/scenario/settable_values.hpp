#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scenario/scenario.hpp"

namespace windtunnel {

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
