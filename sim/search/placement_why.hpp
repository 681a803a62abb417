#pragma once

#include <string>

#include "search/placement_objective.hpp"

namespace windtunnel {

/// What makes one placement better than another, in one line:
///   "stage 3→4 leaves the 6.2 GB/s link node3->node7; its slowest is now 18.6 GB/s"
///   "the gradient ring of stage 2 leaves the 16.4 GB/s link node5->node6; its slowest is now 18.2 GB/s"
///   "stage 7 moves to GPUs that take 39.8 ms a microbatch, from 57.0 ms"
/// Of all terms of the estimate it names the one that would lose most were it still as before; where several are as bad, so
/// that none loses anything alone, the one that takes so much less time itself.
std::string why_better(const PlacementObjective& before, const PlacementObjective& after);

}  // namespace windtunnel
