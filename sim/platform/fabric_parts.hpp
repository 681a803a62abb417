#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "platform/fabric.hpp"
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

/// True if messages between `num_nodes` nodes can queue at the switches of a tier.
bool can_fill(const std::vector<SwitchTier>& tiers, int num_nodes);

// Rails: NIC i of every node of a group is on leaf switch i of that group. Where NVLink joins trays to a node, i counts the NICs of a tray.

/// Rails that the platform's nodes have.
int num_rails(const Platform& platform);
/// The rails of some NICs, in order.
std::vector<int> rails_of(const NodeNics& at, int num_rails);
/// By which NICs a message leaves that is first relayed over NVLink to GPUs on the receiver's rails, of the same trays: PXN of NCCL 2.12 and later
/// (Mandakolathur & Jeaugey, "Doubling all2all performance with NVIDIA Collective Communication Library 2.12", NVIDIA technical blog,
/// 2022). Empty where it is on them already. Limit: NVLink is taken to be faster than the NICs, and never full.
std::vector<int> relayed_to_rails(const Platform& platform, const NodeNics& from,
                                  const NodeNics& to);
/// The fault of nodes on rails, and its key; `relays`: they relay messages over NVLink.
std::pair<std::string, std::string> problem_of_rails(const Platform& platform, const char* relays);

/// Keys of the kinds of fabric with several paths between two ends.
namespace fabrics {

inline constexpr const char* routing = "routing";
inline constexpr const char* routing_seed = "routing_seed";

/// The rule by which a path is chosen. The first word is the default.
inline FabricKey routing_key(std::vector<std::string> words) {
  return {.name = routing,
          .label = "routing",
          .type = FabricKey::Type::word,
          .words = std::move(words)};
}

/// The seed of the hash that picks a path (hashed_choice()).
inline FabricKey routing_seed_key(std::function<bool(const Fabric&)> matters = {}) {
  return {.name = routing_seed,
          .label = "seed of the routing",
          .type = FabricKey::Type::whole,
          .least = 0,
          .most = 1e6,
          .matters = std::move(matters)};
}

}  // namespace fabrics

}  // namespace windtunnel
