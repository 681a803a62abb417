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

/// The nodes that the platform has and its fabric joins.
int most_nodes(const Platform& platform);

/// Nodes that `ranks` GPUs need, in the platform's order; nothing when it has too few.
std::optional<int> nodes_needed(const Platform& platform, std::int64_t ranks);

/// "faults of node 9 change nothing: the job has nodes 0 to 7": of faults and links of nodes beyond its `nodes`, whose number may be a slip.
std::vector<std::string> absent_node_warnings(const Platform& platform, int nodes);

/// "64 nodes * 8 = 512 GPUs", or "2 nodes with 12 GPUs" where they differ.
std::string gpus_text(const ClusterShape& cluster);
int total_gpus(const ClusterShape& cluster);

}  // namespace windtunnel
