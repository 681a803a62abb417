#include "noise/step_series.hpp"

#include <algorithm>
#include <optional>

#include "core/contracts.hpp"
#include "engine/disturbance.hpp"
#include "lower/program_builder.hpp"
#include "noise/step_noise.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {
namespace {

/// Steps whose factors are known before they are played at the same time.
constexpr std::size_t window = 64;

/// With one replica for all, where the step is the same for all.
std::optional<Seconds> play_uniform_step(const BuiltPrograms& built, const StepNoise& noise,
                                         const StepFactors& factors, Seconds first_stall,
                                         EngineKind engine) {
  if (!built.collapsed) return std::nullopt;
  auto disturbance = uniform_disturbance(noise.block(), factors);
  if (!disturbance) return std::nullopt;
  const CollapsedPrograms& collapsed = *built.collapsed;
  const Seconds end =
      play(collapsed.programs, *make_engine(engine, collapsed.network), *disturbance).end;
  return end <= first_stall ? std::optional(end) : std::nullopt;
}

Seconds play_step(const BuiltPrograms& built, const StepNoise& noise, const StepFactors& factors,
                  std::uint32_t step, EngineKind engine) {
  StepDisturbance disturbance(noise, factors, step);
  if (const auto end = play_uniform_step(built, noise, factors, disturbance.first_stall(), engine))
    return *end;
  if (noise.block().links.rate == 0)
    return play(built.programs, *make_engine(engine, built.network), disturbance).end;
  const Network network = disturbed(built.network, noise, step);
  return play(built.programs, *make_engine(engine, network), disturbance).end;
}

}  // namespace

NoiseBlock noise_block_of(const Scenario& scenario) {
  JsonValue tree = scenario.resolved;
  Problems problems;
  JsonValue* block = tree.find("noise");
  if (block == nullptr || !block->is_object())
    problems.add({tree.origin, "/noise", "the scenario has no noise block, so all steps are alike",
                  "write \"noise\": {\"pass_jitter\": 0.01}, or the name of a file of "
                  "platforms/noise"});
  problems.throw_if_any();
  NoiseBlock noise = read_noise(ObjectReader(*block, "/noise", problems));
  problems.throw_if_any();
  return noise;
}

StepSeries play_steps(const Scenario& scenario, const NoiseBlock& noise,
                      const StepOptions& options) {
  WT_EXPECT(is_reentrant(options.engine));
  const Plan& plan = scenario.plan;
  const BuiltPrograms built =
      build_programs({&scenario.model, &scenario.platform, &scenario.nodes, &scenario.software,
                      &plan, options.replicas, options.detail});
  StepSeries series{scenario.name,
                    scenario.hash,
                    noise.name,
                    std::string(name_of(options.engine)),
                    options.seed,
                    plan.num_ranks(),
                    play(built, options.engine).end,
                    std::vector<Seconds>(options.steps),
                    noise.sources};
  if (noise.is_none()) {
    std::fill(series.times.begin(), series.times.end(), series.without_noise);
    return series;
  }
  StepNoise step_noise(noise, options.seed, plan, scenario.nodes, series.without_noise);
  for (std::size_t first = 0; first < options.steps; first += window) {
    const std::size_t count = std::min(window, options.steps - first);
    std::vector<StepFactors> factors;
    for (std::size_t i = 0; i < count; ++i) factors.push_back(step_noise.next_step());
    run_on_threads(count, options.at_once,
                   [&](std::size_t i) {
                     series.times[first + i] =
                         play_step(built, step_noise, factors[i],
                                   static_cast<std::uint32_t>(first + i), options.engine);
                   },
                   {});
  }
  return series;
}

}  // namespace windtunnel
