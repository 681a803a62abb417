#pragma once

#include <optional>

#include "core/object_reader.hpp"
#include "plan/plan.hpp"

namespace windtunnel {

/// Largest job that is read: every rank is an entry of a table.
inline constexpr int most_ranks = 1 << 20;

/// Reads the `parallel` block but for `placement`. Defaults: tensor 1, pipeline 1, schedule 1f1b, virtual_pipeline 1,
/// pipeline_send the software profile's, everything else off. Where `data` is absent it is num_gpus / (tensor * pipeline),
/// or 1 when the number of GPUs is not given either. `node_gpus` says where that number comes from: "64 nodes * 8".
struct GivenGpus {
  int count = 0;
  std::string text;
};
Parallel read_parallel(ObjectReader& reader, const SoftwareProfile& software,
                       const std::optional<GivenGpus>& gpus);

/// Reads `placement`: "megatron" (default), "search", or "node:gpu" by rank, for the cluster and ranks that are known by
/// then. Checks that every entry is a GPU of the cluster and none is used twice.
std::vector<int> read_placement(ObjectReader& reader, int num_ranks, const ClusterShape& cluster);

}  // namespace windtunnel
