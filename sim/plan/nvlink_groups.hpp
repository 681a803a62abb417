#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

/// Ranks that exchange too much for network cards: a tensor group, an expert group or a context group. Jobs keep them inside one
/// NVLink domain where they can.
///
/// Groups lie in blocks of neighbouring ranks. With tensor 8 and context 2 in Megatron-LM's rank order, the tensor groups are the blocks
/// of 8 ranks; a context group is every eighth rank of a block of 16.
struct NvlinkGroup {
  AxisName axis = AxisName::tensor;  ///< tensor, expert or context
  int ranks = 1;           ///< that exchange with one another, all cuts of an expert included
  std::int64_t block = 1;  ///< neighbouring ranks that hold whole groups
  bool operator==(const NvlinkGroup&) const = default;
};

/// Groups of more than one rank. Tensor groups come first, which exchange most often; context groups last, whose exchanges overlap best.
std::vector<NvlinkGroup> nvlink_groups(const Parallel& parallel);

/// Default number of nodes that a plan uses of each NVLink domain: the most that blocks of its groups divide. A domain of 18 nodes
/// of 4 GPUs holds two blocks of 32 on 16 nodes, and nine of 8 on all 18. Blocks that no segment holds are left to straddle. All
/// nodes of the domain for a plan that fits in one.
int default_segment(const Parallel& parallel, int domain_nodes, int gpus_per_node);

/// The platform as a job sees it that uses `segment` nodes of each NVLink domain: in_domains(), with such domains.
Platform in_segments(const Platform& machine, int nodes, int segment);

/// Over how many domains the ranks of such a group are spread, in the worst case. In a plan that was laid out on them, where a
/// domain is a node.
int domains_of(const NvlinkGroup& group, const Plan& plan);

}  // namespace windtunnel
