#pragma once

#include "memory/memory_account.hpp"
#include "scenario/scenario.hpp"
#include "schedule/in_flight.hpp"

namespace windtunnel {

/// What the memory account of a plan on the scenario's nodes is made of. A stage is judged by the one with the least memory of all
/// devices that hold it: replicas may stand on different kinds of nodes. Refers to both; without a learned correction.
MemoryInputs memory_inputs(const Scenario& scenario, const Plan& plan,
                           const InFlightOfStages& in_flight);

}  // namespace windtunnel
