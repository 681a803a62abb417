#pragma once

#include <string>

#include "memory/memory_account.hpp"

namespace windtunnel {

/// What is missing on `worst`, a stage that does not fit, and the nearest changes of the plan that
/// would fit, found by accounting each of them again:
///   stage 0 needs 91.2 GiB, the GPU has 79.2 GiB: 12.0 GiB too much; fits with recompute "full"
///   (61.3 GiB) or micro_batch 1 (70.4 GiB)
/// Each change is tried alone. Figures are what the fullest stage requires.
std::string memory_advice(const MemoryInputs& inputs, const StageMemory& worst);

/// account_memory() for whoever reads no advice: finding it takes longer than the account.
MemoryAccount account_without_advice(const MemoryInputs& inputs);

/// account_stage() without what the allocator reserves, for whoever reads only what is required and whether it fits: playing the allocator
/// takes longer than the account.
StageMemory account_required(const MemoryInputs& inputs, StageId stage);

}  // namespace windtunnel
