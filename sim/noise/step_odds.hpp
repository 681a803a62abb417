#pragma once

#include <string>
#include <vector>

#include "noise/step_series.hpp"

namespace windtunnel {

/// How often something was on the critical path of a step.
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

/// Which resources made steps as long as they are, and which part of the noise costs what.
struct StepOdds {
  StepSeries series;
  std::vector<CriticalOdds> work;   ///< by kind of work, most of the time first
  std::vector<CriticalOdds> nodes;  ///< by the node that computes, most of the time first
  std::vector<NoiseGain> gains;     ///< the largest gain of the mean first
};

/// Plays the steps with their timelines, and again without each part of the noise.
StepOdds step_odds(const Scenario& scenario, const NoiseBlock& noise, const StepOptions& options);

document::Document odds_document(const StepOdds& odds);

}  // namespace windtunnel
