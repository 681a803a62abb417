#pragma once

#include <array>

#include "cost/stage_cost.hpp"
#include "operations/operation.hpp"

namespace windtunnel {

/// Tokens of the fullest rank over those of the mean one, as `in` asks for them.
double expert_load_of(const StageCostInputs& in);

/// An exchange of tokens, or what the ranks that cut an expert gather and scatter, alone on the network: inside nodes, and between them. The
/// longer of the two is its time. `load`: expert_load_of(), since the fullest rank's part sets the pace.
std::array<Seconds, 2> expert_collective_times(const StageCostInputs& in,
                                               const Operation& operation, double load);

/// The loads at which operations are timed where tokens are not spread evenly: the mean of all draws, and the two ends.
struct TimedLoads {
  double mean = 1, least = 1, most = 1;
  /// True if one draw differs from another.
  bool differ() const;
};
TimedLoads timed_loads(const StageCostInputs& in);

/// Says of each operation what it takes in a draw (Operation::by_fullness). `at_least` and `at_most` are the same operations at the ends of
/// `loads`. Kernels follow the line through both ends, which the mean over all draws leaves as it is; they are nearly straight anyhow, since
/// a grouped product of r rows an expert takes C (r + r0) (kernel_cost.hpp). Exchanges are exact.
void set_times_by_fullness(const StageCostInputs& in, const TimedLoads& loads,
                           const ChunkOperations& at_least, const ChunkOperations& at_most,
                           ChunkOperations& operations);

}  // namespace windtunnel
