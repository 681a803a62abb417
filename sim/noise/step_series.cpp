#include "noise/step_series.hpp"

#include "noise/step_player.hpp"

namespace windtunnel {

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
  const StepPlayer player(scenario, noise, options);
  StepSeries series{scenario.name,
                    scenario.hash,
                    noise.name,
                    options.seed,
                    scenario.plan.num_ranks(),
                    player.without_noise(),
                    std::vector<Seconds>(options.steps, player.without_noise()),
                    noise.sources};
  if (!noise.is_none())
    player.for_each_step([&](std::size_t step, const StepFactors& factors) {
      series.times[step] = player.play_step(factors, step);
    });
  return series;
}

}  // namespace windtunnel
