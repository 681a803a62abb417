#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "evidence/measured.hpp"
#include "platform/platform.hpp"
#include "report/document.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// A collective that was played alone.
struct PlayedCollective {
  Seconds time{};
  std::string algorithm;  ///< CollectiveSteps::algorithm, or "pairwise"
};

/// Plays a collective on the first `run.gpus` GPUs of the first `run.nodes` nodes, by the rules by which training pays for it:
/// `run.algorithm`, and exchange_time() for an all-to-all. InputError when the platform has not these GPUs, or when they are more than are
/// simulated.
PlayedCollective play_collective(const CollectiveRun& run, const Platform& platform);

/// The platform of a scenario that may lack everything else: {"platform": "dgx-h100"}.
Platform read_platform(const JsonValue& scenario, const std::filesystem::path& folder,
                       const Library& library, const ReadOptions& reading = {});

/// Bytes over time, counted as nccl-tests do so that they compare with the rate of a link whatever the number of GPUs n:
///   all-reduce 2 (n-1)/n payload / time;   the others (n-1)/n payload / time
/// Source: doc/PERFORMANCE.md of NVIDIA/nccl-tests.
BytesPerSecond bus_bandwidth(const CollectiveRun& run, Seconds time);

/// What `windtunnel collective` was asked: every payload on every number of GPUs.
struct CollectiveQuestion {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  std::vector<int> gpus;           ///< empty: one node, or NVLink domain
  std::vector<Bytes> bytes;        ///< empty: 1 MiB to 4 GiB
  std::string algorithm = "flat";  ///< of collective_algorithms()
};
/// A table of times, algorithms and bus bandwidths, a chart of these, and the sources of the platform's numbers. InputError as of
/// play_collective(), and for GPUs that are no whole nodes.
document::Document collective_document(const CollectiveQuestion& question,
                                       const Platform& platform);

}  // namespace windtunnel
