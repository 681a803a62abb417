#include "noise/step_player.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "core/contracts.hpp"
#include "engine/disturbance.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {
namespace {

/// Steps whose factors are known before they are played at the same time.
constexpr std::size_t window = 64;

/// With one replica for all, where the step is the same for all.
std::optional<Seconds> play_uniform_step(const BuiltPrograms& built, const NoiseBlock& block,
                                         const StepFactors& factors, Seconds first_stall) {
  if (!built.collapsed) return std::nullopt;
  auto disturbance = uniform_disturbance(block, factors);
  if (!disturbance) return std::nullopt;
  const CollapsedPrograms& collapsed = *built.collapsed;
  const Seconds end =
      play(collapsed.programs, *make_native_engine(collapsed.network), *disturbance).end;
  return end <= first_stall ? std::optional(end) : std::nullopt;
}

/// Operation by operation where links change from step to step and a number in a pass would hide what passes send over them.
Detail detail_of(const Plan& plan, const NoiseBlock& noise, Detail asked) {
  const Parallel& parallel = plan.parallel;
  const bool sends_in_passes =
      parallel.gathers_in_passes() || parallel.expert > 1 || parallel.context > 1;
  const bool links_change = noise.links.rate > 0 || noise.links.latency > 0;
  return links_change && sends_in_passes && plan.num_nodes > 1 ? Detail::layer : asked;
}

BuiltPrograms build(const Scenario& scenario, const NoiseBlock& noise, const StepOptions& options) {
  return build_programs({&scenario.model,
                         &scenario.platform,
                         &scenario.nodes,
                         &scenario.software,
                         &scenario.plan,
                         options.replicas,
                         detail_of(scenario.plan, noise, options.detail),
                         {Tokens::Draws::by_seed, scenario.seed}});
}

}  // namespace

StepPlayer::StepPlayer(const Scenario& scenario, const NoiseBlock& noise,
                       const StepOptions& options)
    : options_(options),
      built_(build(scenario, noise, options)),
      without_noise_(play(built_, make_native_engine).end),
      noise_(noise, options.seed, scenario.plan, scenario.nodes, without_noise_) {}

void StepPlayer::for_each_step(
    const std::function<void(std::size_t, const StepFactors&)>& play) const {
  StepNoise noise = noise_;
  for (std::size_t first = 0; first < options_.steps; first += window) {
    const std::size_t count = std::min(window, options_.steps - first);
    std::vector<StepFactors> factors;
    for (std::size_t i = 0; i < count; ++i) factors.push_back(noise.next_step());
    run_on_threads(count, options_.at_once, [&](std::size_t i) { play(first + i, factors[i]); },
                   {});
  }
}

Seconds StepPlayer::play_step(const StepFactors& factors, std::size_t step) const {
  const Seconds first_stall =
      StepDisturbance(noise_, factors, static_cast<std::uint32_t>(step)).first_stall();
  const auto end = play_uniform_step(built_, noise_.block(), factors, first_stall);
  return end ? *end : play_each_device(factors, step, nullptr);
}

Seconds StepPlayer::play_each_device(const StepFactors& factors, std::size_t step,
                                     PlayListener* listener) const {
  const auto number = static_cast<std::uint32_t>(step);
  StepDisturbance disturbance(noise_, factors, number);
  const auto play_on = [&](const Network& network) {
    const auto engine = make_native_engine(network);
    return play(built_.programs, *engine, disturbance, listener).end;
  };
  return noise_.block().links.rate == 0 ? play_on(built_.network)
                                        : play_on(disturbed(built_.network, noise_, number));
}

}  // namespace windtunnel
