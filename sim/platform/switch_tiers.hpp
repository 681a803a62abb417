#pragma once

#include <string>
#include <vector>

#include "platform/platform.hpp"

namespace windtunnel {

/// A tier of the switches of a tree.
struct SwitchTier {
  std::string name;  ///< of a switch, in front of its number: "leaf"
  int nodes = 0;     ///< below each switch, those of lower tiers included
  double taper = 1;  ///< what a switch can take from below over what its uplinks carry
  /// 0: its uplinks are one pool, as adaptive routing sprays packets over them. Else so many equal ones, one of which the ends of a message
  /// choose (hashed_choice()).
  int uplinks = 0;
};

/// Paths through a tree of switches: up to the first tier in which both ends have a switch in common, and down. `tiers`: the lowest first; above
/// the last nothing is ever full, and a tier that no message can fill has no links. Names: "leaf0 up", "leaf0 uplink3 down".
FabricPaths tree_paths(const Platform& platform, int num_nodes,
                       const std::vector<SwitchTier>& tiers, int seed = 0);

/// Whether messages between `num_nodes` nodes can wait for the switches of a tier.
bool can_fill(const std::vector<SwitchTier>& tiers, int num_nodes);

}  // namespace windtunnel
