#include "simulate/folding.hpp"

#include "core/contracts.hpp"
#include "engine/program_simulator.hpp"
#include "lower/token_draws.hpp"
#include "schedule/pipeline_program.hpp"
#include "timeline/steady_state.hpp"
#include "timeline/timeline.hpp"

namespace windtunnel {
namespace {

/// Reach of a plan's order of passes, which has a steady state.
SteadyShape steady_shape(const Plan& plan) {
  const ScheduleReach reach = plan.parallel.schedule->reach(order_shape(plan));
  SteadyShape shape;
  shape.chunks = plan.parallel.virtual_pipeline;
  shape.step = reach.step;
  shape.lag = reach.lag;
  return shape;
}

int longest_period(const SteadyShape& shape) { return shape.lag; }

/// True if gradients cross nodes in the middle of the iteration, where they may meet messages and each other.
bool reduces_across_nodes(const Plan& plan) {
  return gradient_reduction(plan) == GradientReduction::per_microbatch && plan.num_nodes > 1;
}

bool may_fold(const BuildInputs& inputs) {
  const Plan& plan = *inputs.plan;
  const auto encodes_on_own_stream = [](const std::optional<Compressor>& compressor) {
    return compressor && compressor->stream == CodecStream::codec;
  };
  if (encodes_on_own_stream(plan.compression.pipeline_forward) ||
      encodes_on_own_stream(plan.compression.pipeline_backward))
    return false;
  if (reduces_across_nodes(plan) || simulates_operations(inputs) || TokenDraws(inputs).vary())
    return false;
  return plan.nodes_per_tensor_group == 1 && plan.parallel.schedule->reach;
}

/// Passes before the steady state, a period twice, and the drain.
int fewest_microbatches(const SteadyShape& shape) {
  constexpr int settling = 8;
  const int needed = settling + longest_period(shape) + 2 * shape.lag;
  return (needed + shape.step - 1) / shape.step * shape.step;
}

/// The plan with fewer microbatches, built and simulated.
struct ShortRun {
  Plan plan;
  BuiltPrograms built;
  NativeRun run;
};

Plan with_microbatches(const Plan& plan, int microbatches) {
  Plan changed = plan;
  changed.microbatches = microbatches;
  return changed;
}

BuiltPrograms build(BuildInputs inputs, const Plan& plan) {
  inputs.plan = &plan;
  return build_programs(inputs);
}

ShortRun run_with(const BuildInputs& inputs, int microbatches) {
  Plan plan = with_microbatches(*inputs.plan, microbatches);
  BuiltPrograms built = build(inputs, plan);
  NativeRun run = simulate_natively(built);
  return {std::move(plan), std::move(built), std::move(run)};
}

/// `settled`: the run that has come to this steady state. It is simulated again only where the microbatches left out are not a whole number of
/// periods. What a period sends is counted in the last one before the pipeline drains.
Fold folded(const BuildInputs& inputs, ShortRun settled, SteadyState steady, int lag) {
  const int whole = inputs.plan->microbatches, period = steady.period;
  if (const int rest = (whole - settled.plan.microbatches) % period; rest > 0)
    settled = run_with(inputs, settled.plan.microbatches + rest);
  const int simulated = settled.plan.microbatches;
  const auto draining = static_cast<std::uint32_t>(simulated - lag);
  const Repeats repeats{draining - static_cast<std::uint32_t>(period), draining,
                        (whole - simulated) / period};
  return {std::move(settled.plan), std::move(settled.built), std::move(settled.run),
          std::move(steady), repeats};
}

}  // namespace

void Fold::unfold(Breakdown& breakdown, DeviceId device) const {
  for (std::size_t line = 0; line < breakdown.seconds.size(); ++line)
    breakdown.seconds[line] += steady.breakdowns[device.index()].seconds[line] * repeats.left_out;
}

NativeRun simulate_natively(const BuiltPrograms& built) {
  BreakdownListener breakdowns(built.simulated_set().devices.size());
  EngineResult result = simulate_programs(built, make_native_engine, &breakdowns);
  return {std::move(result), std::move(breakdowns)};
}

std::optional<Fold> find_fold(const BuildInputs& inputs) {
  constexpr std::size_t most_times = 8'000'000;  // 64 MB, and at most as much of breakdowns
  constexpr int most_tries = 3;
  constexpr int least_gain = 3;  // a fold that may have to be simulated twice is not worth less
  const Plan& plan = *inputs.plan;
  if (!may_fold(inputs)) return std::nullopt;
  SteadyShape shape = steady_shape(plan);
  shape.microbatches = fewest_microbatches(shape);
  for (int tries = 0; tries < most_tries; ++tries, shape.microbatches *= 2) {
    if (plan.microbatches < least_gain * shape.microbatches) return std::nullopt;
    Plan shorter = with_microbatches(plan, shape.microbatches);
    BuiltPrograms built = build(inputs, shorter);
    const ProgramSet& programs = built.simulated_set();
    if (SteadyStateListener::num_times(programs, shape) > most_times) return std::nullopt;
    BreakdownListener breakdowns(programs.devices.size());
    SteadyStateListener times(programs, built.simulated_network(), breakdowns, shape);
    ListenerPair both(breakdowns, times);
    EngineResult result = simulate_programs(built, make_native_engine, &both);
    if (auto steady = times.find(longest_period(shape)))
      return folded(
          inputs,
          {std::move(shorter), std::move(built), {std::move(result), std::move(breakdowns)}},
          std::move(*steady), shape.lag);
  }
  return std::nullopt;
}

}  // namespace windtunnel
