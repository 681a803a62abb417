#include "search/memory_check.hpp"

#include "simulate/memory_inputs.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {

MemoryCheck check_memory(const Scenario& base, const Plan& plan, const MemoryMargin& margin) {
  return check_memory(base, plan, margin, count_in_flight(plan));
}

MemoryCheck check_memory(const Scenario& base, const Plan& plan, const MemoryMargin& margin,
                         const InFlightOfStages& in_flight) {
  MemoryInputs inputs = memory_inputs(base, plan, in_flight);
  inputs.correction = base.memory_correction.get();
  MemoryCheck check;
  for (int s = 0; s < plan.parallel.pipeline; ++s) {
    const StageMemory stage = account_stage(inputs, StageId{s});
    const Bytes need = stage.required * (1 + margin.share) + margin.amount;
    check.verdict = std::max(check.verdict, stage.verdict);
    check.max_total = std::max(check.max_total, stage.total);
    if (s > 0 && need - stage.usable <= check.with_margin - check.worst.usable) continue;
    check.worst = stage;
    check.with_margin = need;
  }
  check.fits = check.with_margin <= check.worst.usable;
  return check;
}

const InFlightOfStages& InFlightTable::of(const Plan& plan) {
  const OrderShape shape = order_shape(plan);
  const auto [place, is_new] = known_.try_emplace(
      {plan.parallel.schedule.get(), shape.stages, shape.chunks, shape.microbatches});
  if (is_new) place->second = count_in_flight(plan);
  return place->second;
}

std::string text_of(const MemoryCheck& check) {
  return "stage " + std::to_string(check.worst.stage.index()) + " needs " +
         to_text(check.worst.required) + " and a margin of " +
         to_text(check.with_margin - check.worst.required) + ", the GPU has " +
         to_text(check.worst.usable);
}

}  // namespace windtunnel
