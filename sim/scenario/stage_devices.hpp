#pragma once

#include <vector>

#include "scenario/scenario.hpp"

namespace windtunnel {

/// By stage: of all devices that hold it (replicas may stand on different kinds of nodes), the one with the least memory. What the
/// memory account judges a stage by.
std::vector<const Device*> smallest_device_of_stages(const Plan& plan,
                                                     const std::vector<NodeType>& nodes);
inline std::vector<const Device*> smallest_device_of_stages(const Scenario& scenario) {
  return smallest_device_of_stages(scenario.plan, scenario.nodes);
}

}  // namespace windtunnel
