#include "noise/step_series.hpp"

#include <algorithm>
#include <cmath>

#include "core/contracts.hpp"
#include "core/quantile.hpp"
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

namespace {

double share_above(const std::vector<Seconds>& times, Seconds limit) {
  const auto count = std::ranges::count_if(times, [&](Seconds time) { return time > limit; });
  return static_cast<double>(count) / static_cast<double>(times.size());
}

double lag1_correlation(const std::vector<Seconds>& times, Seconds mean) {
  double variance = 0, covariance = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double deviation = (times[i] - mean) / mean;
    variance += deviation * deviation;
    if (i > 0) covariance += deviation * ((times[i - 1] - mean) / mean);
  }
  return variance > 0 ? covariance / variance : 0;
}

}  // namespace

StepStatistics statistics_of(const std::vector<Seconds>& times) {
  WT_EXPECT(!times.empty());
  constexpr double fifth = 0.05, half = 0.5, ninety_fifth = 0.95, ninety_ninth = 0.99;
  constexpr double slightly = 1.02, clearly = 1.05, far = 1.2;
  std::vector<Seconds> sorted = times;
  std::ranges::sort(sorted);
  StepStatistics statistics;
  Seconds excess{};  // over the least, so that equal times have exactly their mean
  for (const Seconds time : times) excess += time - sorted.front();
  statistics.mean = sorted.front() + excess / static_cast<double>(times.size());
  statistics.median = quantile(sorted, half);
  statistics.p5 = quantile(sorted, fifth);
  statistics.p95 = quantile(sorted, ninety_fifth);
  statistics.p99 = quantile(sorted, ninety_ninth);
  statistics.least = sorted.front();
  statistics.most = sorted.back();
  statistics.above_1_02 = share_above(times, statistics.median * slightly);
  statistics.above_1_05 = share_above(times, statistics.median * clearly);
  statistics.above_1_2 = share_above(times, statistics.median * far);
  statistics.lag1_correlation = lag1_correlation(times, statistics.mean);
  return statistics;
}

}  // namespace windtunnel
