#pragma once

#include <string>

#include "memory/memory_account.hpp"
#include "scenario/scenario.hpp"
#include "schedule/in_flight.hpp"

namespace windtunnel {

/// Inputs of the memory account of a plan on the scenario's nodes, with the correction that the scenario names. A stage is judged by the
/// one with the least memory of all devices that hold it: replicas may stand on different kinds of nodes. Refers to both.
MemoryInputs memory_inputs(const Scenario& scenario, const Plan& plan,
                           const InFlightOfStages& in_flight);

/// The memory of a plan of the scenario, without advice. `plan`: with its compressed stages chosen.
MemoryAccount account_memory(const Scenario& scenario, const Plan& plan,
                             const InFlightOfStages& in_flight);

/// Changes that would make `plan` fit, whose account says that it does not. Their figures and verdicts are those of account_memory() for
/// the scenario with the change made, on as many of the platform's nodes as that needs.
std::string memory_advice(const Scenario& scenario, const Plan& plan, const MemoryAccount& account);

}  // namespace windtunnel
