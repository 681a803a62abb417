#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

/// Most nodes of a job that is read.
inline constexpr int most_nodes_in_use = 1 << 16;

/// The first `nodes` nodes of the platform, at most as many as it has.
ClusterShape first_nodes(const Platform& platform, int nodes);

/// The type of each of the first `nodes` nodes. Where their numbers come from stands in the platform's types alone.
std::vector<NodeType> types_of_nodes(const Platform& platform, int nodes);

/// Nodes that `ranks` GPUs need, in the platform's order; nothing when it has too few.
std::optional<int> nodes_needed(const Platform& platform, std::int64_t ranks);

/// "64 nodes * 8 = 512 GPUs", or "2 nodes with 12 GPUs" where they differ.
std::string gpus_text(const ClusterShape& cluster);
int total_gpus(const ClusterShape& cluster);

}  // namespace windtunnel
