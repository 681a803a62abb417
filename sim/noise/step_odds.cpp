#include "noise/step_odds.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "core/memory_left.hpp"
#include "lower/program_builder.hpp"
#include "noise/step_noise.hpp"
#include "noise/step_player.hpp"
#include "report/number_text.hpp"
#include "report/path_shares.hpp"
#include "timeline/critical_path.hpp"
#include "timeline/timeline.hpp"

namespace windtunnel {
namespace {

/// Seconds on the critical path of a step, by name.
using PathTimes = std::map<std::string, Seconds>;

struct StepPath {
  Seconds time{};
  PathTimes work, nodes;
};

StepPath path_of(const Plan& plan, const ProgramSet& programs, const Timeline& timeline) {
  StepPath result;
  result.time = timeline.end;
  const CriticalPath path = find_critical_path(programs, timeline);
  for (const PathShare& share : path_shares(plan, programs, timeline, path))
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
    const NoiseBlock::SlowPart& part = noise.slow_parts[i];
    const std::string name = part.gpu ? "gpu " + std::to_string(*part.gpu)
                                      : "node " + std::to_string(part.node.value_or(0));
    constexpr int digits = 4;
    add(true, name + ", " + significant_text(part.slowdown, digits) + " times as slow",
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
  const StepPlayer player(scenario, noise, options);
  expect_room_for_timelines(player.built().programs, options.at_once);
  std::vector<StepPath> paths(options.steps);
  player.for_each_step([&](std::size_t step, const StepFactors& factors) {
    TimelineListener listener;
    const Seconds end = player.play_each_device(factors, step, &listener);
    listener.timeline().end = end;
    paths[step] = path_of(scenario.plan, player.built().programs, listener.timeline());
  });
  return paths;
}

}  // namespace

StepOdds step_odds(const Scenario& scenario, const NoiseBlock& noise, const StepOptions& options) {
  StepOdds odds;
  odds.series = play_steps(scenario, noise, options);
  const std::vector<StepPath> paths = paths_of(scenario, noise, options);
  odds.work = odds_of(paths, &StepPath::work);
  odds.nodes = odds_of(paths, &StepPath::nodes);
  const StepStatistics with = statistics_of(odds.series.times);
  for (const auto& [what, block] : without_each(noise)) {
    const StepStatistics without = statistics_of(play_steps(scenario, block, options).times);
    odds.gains.push_back({what, with.median - without.median, with.mean - without.mean});
  }
  std::ranges::stable_sort(odds.gains, std::greater<>{}, &NoiseGain::mean);
  return odds;
}

}  // namespace windtunnel
