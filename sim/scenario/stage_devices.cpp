#include "scenario/stage_devices.hpp"

namespace windtunnel {

std::vector<const Device*> smallest_device_of_stages(const Scenario& scenario) {
  std::vector<const Device*> smallest(static_cast<std::size_t>(scenario.plan.parallel.pipeline));
  for (const PlanDevice& device : scenario.plan.devices) {
    const Device& candidate = scenario.nodes[device.node.index()].device;
    const Device*& known = smallest[device.stage.index()];
    if (known == nullptr || candidate.usable_memory < known->usable_memory) known = &candidate;
  }
  return smallest;
}

}  // namespace windtunnel
