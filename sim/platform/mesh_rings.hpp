#pragma once

#include <vector>

#include "platform/platform.hpp"

namespace windtunnel {

/// Rings that a collective over these GPUs of a mesh can run at once: the fewest
/// lanes across any cut of the group (Boost's Stoer-Wagner). On a DGX-1V this is the fewest lanes
/// of a GPU inside the group, 1, 4 and 6 for the first 2, 4 and 8 GPUs, which is what the measured
/// all-reduce shows (V100, 22.3 GB/s a ring; docs/model.md); between two sockets it is the lanes that
/// cross. 0: the group is not connected by lanes.
int num_rings(const Interconnect& interconnect, const std::vector<int>& gpus);

}  // namespace windtunnel
