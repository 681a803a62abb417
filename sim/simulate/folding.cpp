#include "simulate/folding.hpp"

#include "core/contracts.hpp"
#include "engine/player.hpp"
#include "lower/token_draws.hpp"
#include "schedule/pipeline_program.hpp"
#include "timeline/steady_state.hpp"
#include "timeline/timeline.hpp"

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

/// The plan with fewer microbatches, and what it takes without contention.
struct ShortRun {
  ShortRun(BuildInputs inputs, int microbatches) : plan(*inputs.plan) {
    plan.microbatches = microbatches;
    inputs.plan = &plan;
    built.emplace(build_programs(inputs));
  }

  void play(PlayListener& also) {
    const std::size_t num_devices = built->programs_to_play().devices.size();
    BreakdownListener listener(num_devices);
    ListenerPair both(listener, also);
    end = windtunnel::play(*built, make_heap_engine, &both).end;
    for (std::size_t i = 0; i < num_devices; ++i) breakdowns.push_back(listener.of(DeviceId{i}));
  }

  /// Plays it, and says in which steady state it has come to rest, if it has.
  std::optional<SteadyState> find_steady_state() {
    constexpr std::size_t most_times = 8'000'000;  // 64 MB
    SteadyShape shape = steady_shape(plan);
    shape.microbatches = plan.microbatches;
    const ProgramSet& programs = built->programs_to_play();
    if (SteadyStateListener::num_times(programs, shape) > most_times) return std::nullopt;
    SteadyStateListener times(programs, built->network_to_play(), shape);
    play(times);
    return times.find(longest_period(shape));
  }

  Plan plan;
  std::optional<BuiltPrograms> built;
  Seconds end{};
  std::vector<Breakdown> breakdowns;  ///< by device that is played
};

/// Plays the plan with and without one more period: what a period adds. `settled` is the run that has come to a steady state: it is
/// played again only where the microbatches left out are not a whole number of periods.
Fold measured_fold(const BuildInputs& inputs, ShortRun settled, int period) {
  const int whole = inputs.plan->microbatches;
  PlayListener nobody;
  if (const int rest = (whole - settled.plan.microbatches) % period; rest > 0) {
    settled = ShortRun(inputs, settled.plan.microbatches + rest);
    settled.play(nobody);
  }
  ShortRun longer(inputs, settled.plan.microbatches + period);
  longer.play(nobody);
  for (std::size_t i = 0; i < longer.breakdowns.size(); ++i)
    for (std::size_t line = 0; line < longer.breakdowns[i].seconds.size(); ++line)
      longer.breakdowns[i].seconds[line] -= settled.breakdowns[i].seconds[line];
  const int repeats = (whole - settled.plan.microbatches) / period;
  return {std::move(settled.plan),
          std::move(*settled.built),
          std::move(longer.plan),
          std::move(*longer.built),
          repeats,
          longer.end - settled.end,
          std::move(longer.breakdowns)};
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
    ShortRun run(inputs, microbatches);
    if (const auto steady = run.find_steady_state())
      return measured_fold(inputs, std::move(run), steady->period);
  }
  return std::nullopt;
}

}  // namespace windtunnel
