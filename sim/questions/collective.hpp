#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "evidence/measurement_set.hpp"
#include "platform/network.hpp"
#include "platform/platform.hpp"
#include "report/document.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// A collective that was simulated alone.
struct CollectiveResult {
  Seconds time{};
  std::string algorithm;  ///< CollectiveSteps::algorithm, or "pairwise"
};

/// Simulates a collective on the first `run.gpus` GPUs of the first `run.nodes` nodes, by the rules by which training pays for it:
/// `run.algorithm`, and exchange_time() for an all-to-all. InputError when the platform has not these GPUs, or when they are more than are
/// simulated.
CollectiveResult simulate_collective(const CollectiveRun& run, const Platform& platform);

/// The platform of a scenario that may lack everything else: {"platform": "dgx-h100"}.
Platform read_platform(const JsonValue& scenario, const std::filesystem::path& folder,
                       const Library& library, const ReadOptions& reading = {});

/// Bytes over time, counted as nccl-tests do so that they compare with the rate of a link whatever the number of GPUs n:
///   all-reduce 2 (n-1)/n payload / time;   the others (n-1)/n payload / time
/// Source: doc/PERFORMANCE.md of NVIDIA/nccl-tests.
BytesPerSecond bus_bandwidth(const CollectiveRun& run, Seconds time);

/// Question of `windtunnel collective`: every payload on every number of GPUs.
struct CollectiveQuestion {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  std::vector<int> gpus;           ///< empty: one node, or NVLink domain
  std::vector<Bytes> bytes;        ///< empty: 1 MiB to 4 GiB
  std::string algorithm = "flat";  ///< of collective_algorithms()
};
/// A table of times, algorithms and bus bandwidths, a chart of these, and the sources of the platform's numbers. InputError as of
/// simulate_collective(), and for GPUs that are no whole nodes.
document::Document collective_document(const CollectiveQuestion& question,
                                       const Platform& platform);

/// Bytes over a route, all of which begin at once; and when the last of them has arrived.
struct RoutedFlow {
  Route route;
  Bytes bytes{};
};
Seconds time_of_flows(const Network& network, const std::vector<RoutedFlow>& flows);

/// Bandwidth of the network between nodes while the first half of a job's nodes sends to the second: each GPU as many bytes as all others,
/// to the GPU of its number in the node half of the nodes further on. This pattern crosses every cut between the halves with all that it
/// has; it is one pattern, not the worst.
struct Bisection {
  BytesPerSecond nics{};     ///< of the senders, together
  BytesPerSecond carried{};  ///< until the last message is through
  std::string fullest;       ///< the link that takes longest
  BytesPerSecond fullest_bandwidth{};

  double taper() const { return nics / carried; }
};

/// Bisection of a job on the first `nodes` nodes, which are several.
Bisection simulate_bisection(const Platform& job, int nodes);

/// The fabric of a scenario's platform, its links, and its bisection where there are several nodes:
///
///   fabric     leaf_switches: leaf switches below a core without limits; with nodes_per_leaf their uplinks have one
///   nodes      64 of 8 GPUs and 8 NICs of 42.5 GB/s
///   bisection  5.44 TB/s of 10.9 TB/s of the NICs, an oversubscription of 2; slowest with equal messages: leaf0 up (2.72 TB/s)
std::string network_text(const Scenario& scenario);
JsonValue network_json(const Scenario& scenario);

}  // namespace windtunnel
