#include "memory/memory_account.hpp"

#include <algorithm>
#include <cstddef>

#include "core/contracts.hpp"
#include "memory/memory_advice.hpp"

namespace windtunnel {
namespace {

void expect_complete(const MemoryInputs& inputs) {
  WT_EXPECT(inputs.model != nullptr && inputs.plan != nullptr && inputs.software != nullptr);
  const auto stages = static_cast<std::size_t>(inputs.plan->parallel.pipeline);
  WT_EXPECT(stages > 0 && inputs.plan->stage_layers.size() == stages);
  WT_EXPECT(inputs.device_of_stage.size() == stages);
  WT_EXPECT(inputs.in_flight.size() == stages);
  WT_EXPECT(inputs.in_flight_with_gradients.size() == stages);
}

/// By how much a stage misses; negative: its room.
Bytes miss(const StageMemory& stage) { return stage.required - stage.usable; }

}  // namespace

const char* name_of(MemoryVerdict verdict) {
  switch (verdict) {
    case MemoryVerdict::fits:
      return "fits";
    case MemoryVerdict::at_risk:
      return "at_risk";
    case MemoryVerdict::lower_bound:
      return "lower_bound";
    case MemoryVerdict::does_not_fit:
      return "does_not_fit";
  }
  WT_UNREACHABLE();
}

MemoryAccount account_without_advice(const MemoryInputs& inputs) {
  expect_complete(inputs);
  MemoryAccount account;
  for (int stage = 0; stage < inputs.plan->parallel.pipeline; ++stage) {
    account.stages.push_back(account_stage(inputs, StageId{stage}));
    account.max_total = std::max(account.max_total, account.stages.back().total);
    account.verdict = std::max(account.verdict, account.stages.back().verdict);
  }
  const StageMemory& worst = *std::max_element(
      account.stages.begin(), account.stages.end(),
      [](const StageMemory& a, const StageMemory& b) { return miss(a) < miss(b); });
  account.worst_stage = worst.stage;
  account.capacity = inputs.device_of_stage[worst.stage.index()]->memory_capacity;
  account.fits = account.verdict != MemoryVerdict::does_not_fit;
  return account;
}

MemoryAccount account_memory(const MemoryInputs& inputs) {
  MemoryAccount account = account_without_advice(inputs);
  if (!account.fits)
    account.advice = memory_advice(inputs, account.stages[account.worst_stage.index()]);
  return account;
}

}  // namespace windtunnel
