#include "noise/step_series.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "core/memory_left.hpp"
#include "core/quantile.hpp"
#include "engine/program_simulator.hpp"
#include "lower/program_builder.hpp"
#include "noise/step_noise.hpp"
#include "report/explanation.hpp"
#include "report/number_text.hpp"
#include "simulate/tasks.hpp"
#include "timeline/critical_path.hpp"
#include "timeline/timeline.hpp"

namespace windtunnel {
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

/// Steps whose factors are known before they are simulated at the same time.
constexpr std::size_t window = 64;

/// With one replica for all, where the step is the same for all.
std::optional<Seconds> simulate_uniform_step(const BuiltPrograms& built, const NoiseBlock& block,
                                             const StepFactors& factors, Seconds first_stall) {
  if (!built.collapsed) return std::nullopt;
  auto disturbance = uniform_disturbance(block, factors);
  if (!disturbance) return std::nullopt;
  const CollapsedPrograms& one = *built.collapsed;
  const Seconds end =
      simulate_programs(one.programs, *make_native_engine(one.network), *disturbance).end;
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

/// Simulates the steps of a scenario with noise; its programs are built once. Refers to the scenario.
class StepSimulator {
 public:
  StepSimulator(const Scenario& scenario, const NoiseBlock& noise, const StepOptions& options)
      : options_(options),
        built_(build(scenario, noise, options)),
        without_noise_(simulate_programs(built_, make_native_engine).end),
        noise_(noise, options.seed, scenario.plan, scenario.nodes, without_noise_) {}

  const BuiltPrograms& built() const { return built_; }
  Seconds without_noise() const { return without_noise_; }

  /// Calls `run_step` for every step, on the threads that the options allow.
  void for_each_step(const std::function<void(std::size_t, const StepFactors&)>& run_step) const {
    StepNoise noise = noise_;
    for (std::size_t first = 0; first < options_.steps; first += window) {
      const std::size_t count = std::min(window, options_.steps - first);
      std::vector<StepFactors> factors;
      for (std::size_t i = 0; i < count; ++i) factors.push_back(noise.next_step());
      run_on_threads(count, options_.at_once,
                     [&](std::size_t i) { run_step(first + i, factors[i]); }, {});
    }
  }

  /// Duration of the step, simulated with one replica for all if the disturbance is the same for all.
  Seconds simulate_step(const StepFactors& factors, std::size_t step) const {
    const Seconds first_stall =
        StepDisturbance(noise_, factors, static_cast<std::uint32_t>(step)).first_stall();
    const auto end = simulate_uniform_step(built_, noise_.block(), factors, first_stall);
    return end ? *end : simulate_each_device(factors, step, nullptr);
  }

  Seconds simulate_each_device(const StepFactors& factors, std::size_t step,
                               SimulationListener* listener) const {
    const auto number = static_cast<std::uint32_t>(step);
    StepDisturbance disturbance(noise_, factors, number);
    const auto simulate_on = [&](const Network& network) {
      const auto engine = make_native_engine(network);
      return simulate_programs(built_.programs, *engine, disturbance, listener).end;
    };
    return noise_.block().links.rate == 0 ? simulate_on(built_.network)
                                          : simulate_on(disturbed(built_.network, noise_, number));
  }

 private:
  StepOptions options_;
  BuiltPrograms built_;
  Seconds without_noise_{};
  StepNoise noise_;  ///< before its first step
};

/// Seconds on the critical path of a step, by name.
using PathTimes = std::map<std::string, Seconds>;

struct StepPath {
  Seconds time{};
  PathTimes work, nodes;
};

std::string slowdown_text(double slowdown) {
  constexpr int digits = 4;
  return ", " + significant_text(slowdown, digits) + " times as slow";
}

/// "gpu 11"
std::string name_of(const NoiseBlock::SlowPart& part) {
  return part.gpu ? "gpu " + std::to_string(*part.gpu)
                  : "node " + std::to_string(part.node.value_or(0));
}

/// The slow parts of each device's slowest GPU, whose slowdowns multiply as in StepNoise: the device waits for it.
class SlowParts {
 public:
  SlowParts(const Scenario& scenario, const NoiseBlock& noise) {
    const std::vector<std::size_t> first_gpu = first_gpus(scenario.nodes);
    for (const PlanDevice& device : scenario.plan.devices) {
      Slow& slowest = of_device_.emplace_back();
      const auto node = static_cast<int>(device.node.index());
      for (const int gpu : device.gpus) {
        Slow slow;
        for (const NoiseBlock::SlowPart& part : noise.slow_parts) {
          if (!part.slows(node, static_cast<int>(first_gpu[device.node.index()]) + gpu)) continue;
          slow.slowdown *= part.slowdown;
          slow.names += (slow.names.empty() ? "" : " and ") + name_of(part);
        }
        if (slow.slowdown > slowest.slowdown) slowest = slow;
      }
    }
  }

  SpanDelay delay_of(DeviceId device, const Work& usual) const {
    const Slow& slow = of_device_[device.index()];
    if (slow.names.empty()) return {};
    return {slow.names + slowdown_text(slow.slowdown),
            with_slower_kernels(usual, slow.slowdown) - usual.duration};
  }

 private:
  struct Slow {
    std::string names;  ///< "node 1 and gpu 11"
    double slowdown = 1;
  };
  std::vector<Slow> of_device_;
};

StepPath path_of(const Plan& plan, const ProgramSet& programs, const Timeline& timeline,
                 const SlowParts& slow) {
  StepPath result;
  result.time = timeline.end;
  const CriticalPath path = find_critical_path(programs, timeline);
  for (const PathShare& share :
       path_shares(plan, programs, timeline, path,
                   [&](DeviceId device, const Work&usual) { return slow.delay_of(device, usual); }))
    result.work[share.what] += share.time;
  for (const CriticalStep& step : path.steps) {
    if (step.activity.kind != Activity::Kind::compute) continue;
    const Span& span = timeline.computes[step.activity.index];
    const NodeId node = plan.devices[span.device.index()].node;
    result.nodes["node " + std::to_string(node.index())] += step.end - step.begin;
  }
  return result;
}

std::vector<CriticalOdds> odds_of(const std::vector<StepPath>& steps, PathTimes StepPath::*times) {
  constexpr double least_share = 0.01;
  std::map<std::string, CriticalOdds> found;
  Seconds all{};
  for (const StepPath& step : steps) all += step.time;
  for (const StepPath& step : steps)
    for (const auto& [what, time] : step.*times) {
      CriticalOdds& odds = found[what];
      odds.what = what;
      odds.share_of_time += time / all;
      if (time >= step.time * least_share)
        odds.share_of_steps += 1 / static_cast<double>(steps.size());
    }
  std::vector<CriticalOdds> list;
  for (auto& [what, odds] : found) list.push_back(std::move(odds));
  std::ranges::stable_sort(list, std::greater<>{}, &CriticalOdds::share_of_time);
  return list;
}

/// The noise without one of its parts, for each part that it has.
std::vector<std::pair<std::string, NoiseBlock>> without_each(const NoiseBlock& noise) {
  std::vector<std::pair<std::string, NoiseBlock>> list;
  const auto add = [&](bool is_there, const std::string& what, const auto& remove) {
    if (!is_there) return;
    list.emplace_back(what, noise);
    remove(list.back().second);
  };
  for (std::size_t i = 0; i < noise.slow_parts.size(); ++i) {
    add(true, name_of(noise.slow_parts[i]) + slowdown_text(noise.slow_parts[i].slowdown),
        [i](NoiseBlock& block) {
          block.slow_parts.erase(block.slow_parts.begin() + static_cast<std::ptrdiff_t>(i));
        });
  }
  add(noise.pass_jitter > 0, "jitter of passes", [](NoiseBlock& block) { block.pass_jitter = 0; });
  add(noise.spread.gpu > 0 || noise.spread.node > 0, "unequal GPUs and nodes",
      [](NoiseBlock& block) { block.spread = {}; });
  const NoiseBlock::StepJitter& steps = noise.step_jitter;
  add(steps.all > 0 || steps.gpu > 0 || steps.node > 0, "jitter of steps",
      [](NoiseBlock& block) { block.step_jitter = {}; });
  add(noise.links.rate > 0 || noise.links.latency > 0, "jitter of links",
      [](NoiseBlock& block) { block.links = {}; });
  add(noise.stalls.per_gpu_hour > 0, "stalls", [](NoiseBlock& block) { block.stalls = {}; });
  return list;
}

void expect_room_for_timelines(const ProgramSet& programs, std::size_t at_once) {
  constexpr double bytes_of_op =
      250;  // as for one iteration with its timeline (simulate/simulate.cpp)
  std::size_t ops = 0;
  for (const ProgramDevice& device : programs.devices)
    for (const std::vector<Op>& stream : programs.programs[device.program].streams)
      ops += stream.size();
  expect_memory_for(bytes_of_op * static_cast<double>(ops * at_once),
                    "critical paths of " + std::to_string(at_once) + " steps at the same time",
                    "use fewer --jobs, or run --steps, which keeps no timelines");
}

/// The paths of all steps, in order.
std::vector<StepPath> paths_of(const Scenario& scenario, const NoiseBlock& noise,
                               const StepOptions& options) {
  const StepSimulator simulator(scenario, noise, options);
  expect_room_for_timelines(simulator.built().programs, options.at_once);
  const SlowParts slow(scenario, noise);
  std::vector<StepPath> paths(options.steps);
  simulator.for_each_step([&](std::size_t step, const StepFactors& factors) {
    TimelineListener listener;
    const Seconds end = simulator.simulate_each_device(factors, step, &listener);
    listener.timeline().end = end;
    paths[step] = path_of(scenario.plan, simulator.built().programs, listener.timeline(), slow);
  });
  return paths;
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

StepSeries simulate_steps(const Scenario& scenario, const NoiseBlock& noise,
                          const StepOptions& options) {
  const StepSimulator simulator(scenario, noise, options);
  StepSeries series{scenario.name,
                    scenario.hash,
                    noise.name,
                    options.seed,
                    scenario.plan.num_ranks(),
                    simulator.without_noise(),
                    std::vector<Seconds>(options.steps, simulator.without_noise()),
                    noise.sources};
  if (!noise.is_none())
    simulator.for_each_step([&](std::size_t step, const StepFactors& factors) {
      series.times[step] = simulator.simulate_step(factors, step);
    });
  return series;
}

Simulation first_step(const Scenario& scenario, const NoiseBlock& noise, StepOptions options) {
  options.steps = 1;
  const StepSimulator simulator(scenario, noise, options);
  expect_room_for_timelines(simulator.built().programs, 1);
  TimelineListener listener;
  simulator.for_each_step([&](std::size_t step, const StepFactors& factors) {
    listener.timeline().end = simulator.simulate_each_device(factors, step, &listener);
  });
  Simulation first = simulate(scenario);
  first.programs = simulator.built().programs;
  first.timeline = std::move(listener.timeline());
  return first;
}

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

StepOdds step_odds(const Scenario& scenario, const NoiseBlock& noise, const StepOptions& options) {
  StepOdds odds;
  odds.series = simulate_steps(scenario, noise, options);
  const std::vector<StepPath> paths = paths_of(scenario, noise, options);
  odds.work = odds_of(paths, &StepPath::work);
  odds.nodes = odds_of(paths, &StepPath::nodes);
  const StepStatistics with = statistics_of(odds.series.times);
  for (const auto& [what, block] : without_each(noise)) {
    const StepStatistics without = statistics_of(simulate_steps(scenario, block, options).times);
    odds.gains.push_back({what, with.median - without.median, with.mean - without.mean});
  }
  std::ranges::stable_sort(odds.gains, std::greater<>{}, &NoiseGain::mean);
  return odds;
}

}  // namespace windtunnel
