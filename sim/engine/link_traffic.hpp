#pragma once

#include <array>
#include <vector>

#include "platform/network.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// Bytes by traffic class.
using TrafficBytes = std::array<Bytes, num_traffic_classes>;
Bytes total_of(const TrafficBytes& bytes);

/// Traffic of each link of the network in one iteration: every message between nodes, and every flow of
/// a collective as often as its members enter it, on all links of both its paths. Counted from the programs, since simulating
/// them neither adds nor drops a flow.
std::vector<TrafficBytes> traffic_of_links(const Network& network, const ProgramSet& programs,
                                           const Repeats& repeats = {});

}  // namespace windtunnel
