#include "scenario/memory_inputs.hpp"

#include "scenario/stage_devices.hpp"

namespace windtunnel {

MemoryInputs memory_inputs(const BuildInputs& inputs, const InFlightOfStages& in_flight) {
  MemoryInputs result;
  result.model = inputs.model;
  result.plan = inputs.plan;
  result.software = inputs.software;
  result.device_of_stage = smallest_device_of_stages(*inputs.plan, *inputs.nodes);
  result.in_flight = in_flight.all;
  result.in_flight_with_gradients = in_flight.with_gradients;
  return result;
}

}  // namespace windtunnel
