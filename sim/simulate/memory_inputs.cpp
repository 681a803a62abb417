#include "simulate/memory_inputs.hpp"

#include <algorithm>

namespace windtunnel {
namespace {

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

}  // namespace

MemoryInputs memory_inputs(const Scenario& scenario, const Plan& plan,
                           const InFlightOfStages& in_flight) {
  MemoryInputs result;
  result.model = &scenario.model;
  result.plan = &plan;
  result.software = &scenario.software;
  result.device_of_stage = smallest_device_of_stages(plan, scenario.nodes);
  result.has_host = std::all_of(scenario.nodes.begin(), scenario.nodes.end(),
                                [](const NodeType& node) { return node.host.has_value(); });
  result.in_flight = in_flight.all;
  result.in_flight_with_gradients = in_flight.with_gradients;
  return result;
}

}  // namespace windtunnel
