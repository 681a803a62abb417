#pragma once

#include "memory/in_flight.hpp"
#include "memory/memory_account.hpp"
#include "scenario/program_builder.hpp"

namespace windtunnel {

/// What the memory account of a plan on its nodes is made of: of all replicas' devices that hold a stage, the one with the
/// least memory.
MemoryInputs memory_inputs(const BuildInputs& inputs, const InFlightOfStages& in_flight);

}  // namespace windtunnel
