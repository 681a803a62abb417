#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/object_reader.hpp"
#include "plan/plan.hpp"

namespace windtunnel {

/// Largest job that is read: every rank is an entry of a table.
inline constexpr int most_ranks = 1 << 20;

/// The GPUs of the nodes that the scenario asks for.
struct GivenGpus {
  int count = 0;
  std::string text;  ///< "64 nodes * 8 = 512 GPUs"
};

/// Reads the `parallel` block but for `placement`. Defaults: tensor 1, pipeline 1, schedule 1f1b, virtual_pipeline 1,
/// pipeline_send the software profile's, everything else off. Where `data` is absent it is num_gpus / (tensor * pipeline),
/// or 1 when the number of GPUs is not given either. `stage_layers` is a list, Megatron-LM's layout (read_pipeline_layout), or
/// "balanced", which only the whole scenario can answer.
Parallel read_parallel(ObjectReader& reader, const SoftwareProfile& software,
                       const std::optional<GivenGpus>& gpus);

/// Whether `stage_layers` is "balanced".
bool asks_for_balance(ObjectReader& reader);

/// "tensor * pipeline * data = 8 * 8 * 8 = 512".
std::string product_text(const Parallel& parallel);

/// False, with a problem, where products would leave the range of what can be counted.
bool check_magnitudes(ObjectReader& reader, const Training& training, const Parallel& parallel);

/// Reads `placement`: "megatron" (default), "search", or "node:gpu" by rank, for the cluster and ranks that are known by
/// then. Checks that every entry is a GPU of the cluster and none is used twice.
std::vector<int> read_placement(ObjectReader& reader, int num_ranks, const ClusterShape& cluster);

}  // namespace windtunnel
