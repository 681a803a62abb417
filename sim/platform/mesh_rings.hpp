#pragma once

#include <vector>

#include "platform/platform.hpp"

namespace windtunnel {

/// Rings that a collective over these GPUs of a mesh can run at once: the most directed cycles through all of them of which no two
/// use a lane in the same direction. On a DGX-1V 1, 2, 4, 0, 2, 4 and 6 for the first 2 to 8 GPUs, which is what the measured
/// all-reduce shows for 2, 4 and 8 (V100, 22.3 GB/s a ring; docs/model.md). 0: messages have to be relayed, or go through the host.
/// Counted exactly for groups of up to `most_counted` GPUs; larger ones get the bound that num_relayed_rings() is.
int num_rings(const Interconnect& interconnect, const std::vector<int>& gpus);
inline constexpr int most_counted = 8;

/// Closed walks through all of these GPUs, some passed several times: no more than the fewest lanes across any cut of the group
/// (Boost's Stoer-Wagner). 0: the group is not connected by lanes.
int num_relayed_rings(const Interconnect& interconnect, const std::vector<int>& gpus);

}  // namespace windtunnel
