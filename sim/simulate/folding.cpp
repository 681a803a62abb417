#include "simulate/folding.hpp"

#include "core/contracts.hpp"
#include "engine/player.hpp"
#include "lower/token_draws.hpp"
#include "schedule/pipeline_program.hpp"
#include "timeline/steady_state.hpp"

namespace windtunnel {
namespace {

/// What a plan's order of passes, which has a steady state, reaches over.
SteadyShape steady_shape(const Plan& plan) {
  const ScheduleReach reach = plan.parallel.schedule->reach(order_shape(plan));
  SteadyShape shape;
  shape.chunks = plan.parallel.virtual_pipeline;
  shape.step = reach.step;
  shape.lag = reach.lag;
  return shape;
}

int longest_period(const SteadyShape& shape) { return shape.lag; }

/// Whether gradients cross nodes in the middle of the iteration, where they may meet messages and one another.
bool reduces_across_nodes(const Plan& plan) {
  return gradient_reduction(plan) == GradientReduction::per_microbatch && plan.num_nodes > 1;
}

bool may_fold(const BuildInputs& inputs) {
  const Plan& plan = *inputs.plan;
  const auto encodes_beside = [](const std::optional<Compressor>& compressor) {
    return compressor && compressor->stream == CodecStream::codec;
  };
  if (encodes_beside(plan.compression.pipeline_forward) ||
      encodes_beside(plan.compression.pipeline_backward))
    return false;
  if (reduces_across_nodes(plan) || plays_operations(inputs) || TokenDraws(inputs).vary())
    return false;
  return plan.nodes_per_tensor_group == 1 && plan.parallel.schedule->reach;
}

/// Passes before the steady state, a period twice, and the drain.
int fewest_microbatches(const SteadyShape& shape) {
  constexpr int settling = 32;
  const int needed = settling + longest_period(shape) + 2 * shape.lag;
  return (needed + shape.step - 1) / shape.step * shape.step;
}

BuiltPrograms build(BuildInputs inputs, const Plan& plan) {
  inputs.plan = &plan;
  return build_programs(inputs);
}

Plan with_microbatches(const Plan& plan, int microbatches) {
  Plan changed = plan;
  changed.microbatches = microbatches;
  return changed;
}

/// The steady state of the plan, if it has come to one by then.
std::optional<SteadyState> steady_state(const BuildInputs& inputs, const Plan& plan) {
  constexpr std::size_t most_times = 8'000'000;  // 64 MB
  const BuiltPrograms built = build(inputs, plan);
  SteadyShape shape = steady_shape(plan);
  shape.microbatches = plan.microbatches;
  const ProgramSet& programs = built.programs_to_play();
  if (SteadyStateListener::num_times(programs, shape) > most_times) return std::nullopt;
  SteadyStateListener listener(programs, built.network_to_play(), shape);
  play(built, make_heap_engine, &listener);
  return listener.find(longest_period(shape));
}

struct Uncontended {
  Seconds end{};
  std::vector<Breakdown> breakdowns;
};

Uncontended play_uncontended(const BuildInputs& inputs, const Plan& plan) {
  const BuiltPrograms built = build(inputs, plan);
  const std::size_t num_devices = built.programs_to_play().devices.size();
  BreakdownListener listener(num_devices);
  Uncontended result;
  result.end = play(built, make_heap_engine, &listener).end;
  for (std::size_t i = 0; i < num_devices; ++i)
    result.breakdowns.push_back(listener.of(DeviceId{i}));
  return result;
}

/// Plays the plan with and without one more period: what a period adds.
Fold measured_fold(const BuildInputs& inputs, int microbatches, int period) {
  const Plan& whole = *inputs.plan;
  Fold fold;
  fold.period = period;
  fold.plan = with_microbatches(whole, microbatches + (whole.microbatches - microbatches) % period);
  fold.longer = with_microbatches(whole, fold.plan.microbatches + period);
  fold.repeats = (whole.microbatches - fold.plan.microbatches) / period;
  const Uncontended shorter = play_uncontended(inputs, fold.plan);
  Uncontended longer = play_uncontended(inputs, fold.longer);
  fold.duration = longer.end - shorter.end;
  for (std::size_t i = 0; i < longer.breakdowns.size(); ++i)
    for (std::size_t line = 0; line < longer.breakdowns[i].seconds.size(); ++line)
      longer.breakdowns[i].seconds[line] -= shorter.breakdowns[i].seconds[line];
  fold.breakdowns = std::move(longer.breakdowns);
  return fold;
}

}  // namespace

std::optional<Fold> find_fold(const BuildInputs& inputs) {
  constexpr int most_tries = 3;
  constexpr int least_gain = 3;  // finding a fold plays about so many times the microbatches
  const Plan& plan = *inputs.plan;
  if (!may_fold(inputs)) return std::nullopt;
  int microbatches = fewest_microbatches(steady_shape(plan));
  for (int tries = 0; tries < most_tries; ++tries, microbatches *= 2) {
    if (plan.microbatches < least_gain * microbatches) return std::nullopt;
    const auto steady = steady_state(inputs, with_microbatches(plan, microbatches));
    if (steady) return measured_fold(inputs, microbatches, steady->period);
  }
  return std::nullopt;
}

}  // namespace windtunnel
