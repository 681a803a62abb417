#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/collapse.hpp"
#include "operations/operation.hpp"
#include "report/document.hpp"
#include "scenario/noise_block.hpp"
#include "scenario/scenario.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {

/// Options for simulating steps.
struct StepOptions {
  std::size_t steps = 1000;
  std::uint64_t seed = 0;
  Detail detail = Detail::pass;
  std::size_t at_once = 1;  ///< threads; the result is the same
  /// Replicas to simulate in steps that disturb all devices alike: each, or one for all that provably do the same.
  Replicas replicas = Replicas::collapsed_when_exact;
};

/// Many iterations of a scenario, each with other draws of its noise.
struct StepSeries {
  std::string name, scenario_hash, noise_name;
  std::uint64_t seed = 0;
  int num_gpus = 0;
  Seconds without_noise{};
  std::vector<Seconds> times;  ///< in order
  Sources sources;             ///< of the noise
};

/// Statistics of a series of step times.
struct StepStatistics {
  Seconds mean{}, median{}, p5{}, p95{}, p99{}, least{}, most{};
  /// Shares of steps above 1.02, 1.05 and 1.2 times the median.
  double above_1_02 = 0, above_1_05 = 0, above_1_2 = 0;
  /// Between a step and the next; 0 where no step differs from another.
  double lag1_correlation = 0;
};

/// The scenario's noise block; InputError where it has none.
NoiseBlock noise_block_of(const Scenario& scenario);

/// Simulates every step with every microbatch, and with every replica where no two devices do the same. Programs are built once.
StepSeries simulate_steps(const Scenario& scenario, const NoiseBlock& noise,
                          const StepOptions& options);

/// The first step, with its timeline, for a trace; the report is that of an iteration without noise.
Simulation first_step(const Scenario& scenario, const NoiseBlock& noise, StepOptions options);

StepStatistics statistics_of(const std::vector<Seconds>& times);

/// The statistics; on the page also the series, and how often steps take how long.
document::Document steps_document(const StepSeries& series);
/// "step,time_s" and a row for each step.
std::string steps_csv(const StepSeries& series);

/// Frequency with which something was on the critical path of a step.
struct CriticalOdds {
  std::string what;           ///< "compute of stage 5", "node 3"
  double share_of_steps = 0;  ///< in which it held at least a hundredth of the path
  double share_of_time = 0;   ///< of the paths of all steps together
};

/// Time of the same steps without one part of the noise: all other draws are the same.
struct NoiseGain {
  std::string what;  ///< "gpu 11, 1.25 times as slow", "stalls"
  Seconds median{}, mean{};
};

/// Resources on the critical paths of steps, and the cost of each kind of noise.
struct StepOdds {
  StepSeries series;
  std::vector<CriticalOdds> work;   ///< by kind of work, most of the time first
  std::vector<CriticalOdds> nodes;  ///< by the node that computes, most of the time first
  std::vector<NoiseGain> gains;     ///< the largest gain of the mean first
};

/// Simulates the steps with their timelines, and again without each part of the noise.
StepOdds step_odds(const Scenario& scenario, const NoiseBlock& noise, const StepOptions& options);

document::Document odds_document(const StepOdds& odds);

}  // namespace windtunnel
