#include "simulate/memory_inputs.hpp"

#include <algorithm>

#include "cost/stage_cost.hpp"

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

/// Of a first replica's nodes. Only the order of a step that is played asks for it.
std::vector<bool> launch_bound_stages(const Scenario& scenario, const Plan& plan) {
  if (scenario.software.waiting_collectives == 0) return {};
  std::vector<bool> found(static_cast<std::size_t>(plan.parallel.pipeline));
  for (const PlanDevice& device : plan.devices) {
    if (device.replica > 0 || device.group_node > 0) continue;
    const NodeType& node = scenario.nodes[device.node.index()];
    const StageCost cost = stage_cost({&scenario.model,
                                       &plan,
                                       &scenario.software,
                                       &node,
                                       &scenario.platform.fabric,
                                       device.stage,
                                       device.gpus,
                                       {},
                                       {},
                                       {}});
    Seconds lead{};
    for (const ChunkCost& chunk : cost.chunks)
      for (const PassCost* pass : {&chunk.forward, &chunk.backward})
        lead += pass->floor.launch - pass->compute - pass->tensor_comm;
    found[device.stage.index()] = lead > Seconds{};
  }
  return found;
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
  result.is_launch_bound = launch_bound_stages(scenario, plan);
  result.in_flight = in_flight.all;
  result.in_flight_with_gradients = in_flight.with_gradients;
  return result;
}

}  // namespace windtunnel
