#include "scenario/memory_inputs.hpp"

namespace windtunnel {

MemoryInputs memory_inputs(const BuildInputs& inputs, const InFlightOfStages& in_flight) {
  MemoryInputs result;
  result.model = inputs.model;
  result.plan = inputs.plan;
  result.software = inputs.software;
  result.device_of_stage.resize(inputs.plan->stage_layers.size());
  for (const PlanDevice& device : inputs.plan->devices) {
    const Device*& smallest = result.device_of_stage[device.stage.index()];
    const Device& candidate = (*inputs.nodes)[device.node.index()].device;
    if (smallest == nullptr || candidate.usable_memory < smallest->usable_memory)
      smallest = &candidate;
  }
  result.in_flight = in_flight.all;
  result.in_flight_with_gradients = in_flight.with_gradients;
  return result;
}

}  // namespace windtunnel
