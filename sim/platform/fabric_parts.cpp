#include "platform/fabric_parts.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "platform/network.hpp"

namespace windtunnel {
namespace {

/// The switches of a tier, and their links as they are made.
class TierPaths {
 public:
  /// `taper`: of this tier and all below it.
  TierPaths(const Platform& platform, int num_nodes, SwitchTier tier, double taper)
      : tier_(std::move(tier)), taper_(taper) {
    for (int node = 0; node < num_nodes; ++node) {
      if (node % tier_.nodes == 0) from_below_.emplace_back();
      from_below_.back() += node_bandwidth(platform, NodeId(node));
    }
  }

  std::size_t switch_of(NodeId node) const {
    return node.index() / static_cast<std::size_t>(tier_.nodes);
  }
  bool can_fill() const { return taper_ > 1 || tier_.uplinks > 0; }

  /// Adds the links of a switch. `members`: the uplinks that the message has, where they are distinguished.
  void pass(Network& network, std::vector<LinkId>& path, std::size_t at,
            const std::vector<int>& members, Network::Direction direction) {
    const BytesPerSecond bandwidth = from_below_[at] / taper_;
    if (!members.empty())
      return network.pass(
          path,
          {name_of(at), "uplink", bandwidth / static_cast<double>(tier_.uplinks), tier_.uplinks},
          members, direction);
    const bool is_up = direction == Network::Direction::up;
    path.push_back(links_[is_up ? 0 : 1].at(
        at, [&] { return network.add_link(bandwidth, name_of(at) + (is_up ? " up" : " down")); }));
  }

  std::vector<int> members(const NodeNics& from, const NodeNics& to, int seed, int salt) const {
    if (tier_.uplinks == 0) return {};
    return hashed_choices(tier_.uplinks, seed, from, to, salt);
  }

 private:
  std::string name_of(std::size_t at) const { return tier_.name + std::to_string(at); }

  SwitchTier tier_;
  double taper_;
  std::vector<BytesPerSecond> from_below_;  ///< by switch: all NICs below
  std::array<CountedLinks, 2> links_;       ///< up and down, by switch
};

}  // namespace

FabricPaths tree_paths(const Platform& platform, int num_nodes,
                       const std::vector<SwitchTier>& tiers, int seed) {
  std::vector<TierPaths> switches;
  double taper = 1;
  for (const SwitchTier& tier : tiers) {
    taper *= tier.taper;
    switches.emplace_back(platform, num_nodes, tier, taper);
  }
  return [switches = std::move(switches), seed](Network& network, const NodeNics& from,
                                                const NodeNics& to) mutable {
    FabricPath path;
    std::vector<std::pair<TierPaths*, std::vector<int>>> passed;
    for (std::size_t i = 0; i < switches.size(); ++i) {
      TierPaths& tier = switches[i];
      const std::size_t source = tier.switch_of(from.node);
      if (source == tier.switch_of(to.node)) break;
      if (!tier.can_fill()) continue;
      std::vector<int> members = tier.members(from, to, seed, static_cast<int>(i));
      tier.pass(network, path.up, source, members, Network::Direction::up);
      passed.emplace_back(&tier, std::move(members));
    }
    // The way down is that of the switches that were chosen on the way up.
    for (auto each = passed.rbegin(); each != passed.rend(); ++each)
      each->first->pass(network, path.down, each->first->switch_of(to.node), each->second,
                        Network::Direction::down);
    return path;
  };
}

bool can_fill(const std::vector<SwitchTier>& tiers, int num_nodes) {
  double taper = 1;
  return std::ranges::any_of(tiers, [&](const SwitchTier& tier) {
    taper *= tier.taper;
    return num_nodes > tier.nodes && (taper > 1 || tier.uplinks > 0);
  });
}

int num_rails(const Platform& platform) {
  const NodeType& type = platform.node_types.front();
  return type.nics / type.trays;
}

std::vector<int> rails_of(const NodeNics& at, int num_rails) {
  std::vector<int> rails;
  rails.reserve(at.nics.size());
  for (const int nic : at.nics) rails.push_back(nic % num_rails);
  return sorted_once(std::move(rails));
}

std::vector<int> relayed_to_rails(const Platform& platform, const NodeNics& from,
                                  const NodeNics& to) {
  const int count = num_rails(platform);
  const std::vector<int> rails = rails_of(to, count);
  if (rails == rails_of(from, count)) return {};
  std::vector<int> nics;
  for (const int nic : from.nics)
    for (const int rail : rails) nics.push_back(nic - nic % count + rail);
  return sorted_once(std::move(nics));
}

std::pair<std::string, std::string> problem_of_rails(const Platform& platform, const char* relays) {
  for (const NodeType& type : platform.node_types) {
    if (type.nics != platform.node_types.front().nics)
      return {"kind", "rails join nodes with equal numbers of NICs"};
    if (relays != nullptr && type.interconnect.kind == Interconnect::Kind::pcie)
      return {relays,
              "a message is relayed over NVLink, and the GPUs of a node are joined by PCIe"};
  }
  return {};
}

}  // namespace windtunnel
