#pragma once

#include <functional>
#include <optional>
#include <string>

#include "memory/memory_account.hpp"

namespace windtunnel {

/// The memory of a changed plan, as whoever judges plans accounts it; nothing where there is no such plan.
using AccountOfChoice = std::function<std::optional<MemoryAccount>(const PlanChoice&)>;

/// The memory missing on the worst stage of an account that does not fit, and the nearest changes of the plan that would fit, each of them
/// accounted again:
///   stage 0 needs 91.2 GiB, the GPU has 79.2 GiB: 12.0 GiB too much; fits with recompute "full"
///   (61.3 GiB) or micro_batch 1 (70.4 GiB, at risk)
/// Each change is tried alone. Figures are what the fullest stage requires.
std::string memory_advice(const MemoryInputs& inputs, const MemoryAccount& account,
                          const AccountOfChoice& account_of);

/// account_stage() without what the allocator reserves, for whoever reads only what is required and whether it fits: simulating the allocator
/// takes longer than the account.
StageMemory account_required(const MemoryInputs& inputs, StageId stage);

}  // namespace windtunnel
