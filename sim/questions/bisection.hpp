#pragma once

#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "platform/network.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// Bytes over a route, all of which begin at once; and when the last of them has arrived.
struct RoutedFlow {
  Route route;
  Bytes bytes{};
};
Seconds time_of_flows(const Network& network, const std::vector<RoutedFlow>& flows);

/// What the network between nodes carries when the first half of a job's nodes sends to the second: each GPU as many bytes as all others, to the
/// GPU of its number in the node half of the nodes further on. This pattern crosses every cut between the halves with all that it has; it is one
/// pattern, not the worst.
struct Bisection {
  BytesPerSecond nics{};     ///< of the senders, together
  BytesPerSecond carried{};  ///< until the last message is through
  std::string fullest;       ///< the link that takes longest
  BytesPerSecond fullest_bandwidth{};

  double taper() const { return nics / carried; }
};

/// Of a job on the first `nodes` nodes, which are several.
Bisection play_bisection(const Platform& job, int nodes);

/// The fabric of a scenario's platform, its links, and its bisection where there are several nodes:
///
///   fabric     leaf_switches: leaf switches below a core that never fills; non-blocking without nodes_per_leaf
///   nodes      64 of 8 GPUs and 8 NICs of 42.5 GB/s
///   bisection  5.44 TB/s of 10.9 TB/s of the NICs, a taper of 2; leaf0 up (2.72 TB/s) takes longest
std::string network_text(const Scenario& scenario);
JsonValue network_json(const Scenario& scenario);

}  // namespace windtunnel
