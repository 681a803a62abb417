#include "scenario/stage_devices.hpp"

namespace windtunnel {

std::vector<const Device*> smallest_device_of_stages(const Plan& plan,
                                                     const std::vector<NodeType>& nodes) {
  std::vector<const Device*> smallest(static_cast<std::size_t>(plan.parallel.pipeline));
  for (const PlanDevice& device : plan.devices) {
    const Device& candidate = nodes[device.node.index()].device;
    const Device*& known = smallest[device.stage.index()];
    if (known == nullptr || candidate.usable_memory < known->usable_memory) known = &candidate;
  }
  return smallest;
}

}  // namespace windtunnel
