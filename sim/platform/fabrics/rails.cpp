#include <algorithm>
#include <vector>

#include "platform/fabric_parts.hpp"
#include "platform/network.hpp"

namespace windtunnel::fabrics {
namespace {

constexpr const char* nodes_per_group = "nodes_per_group";
constexpr const char* oversubscription = "oversubscription";
constexpr const char* pxn = "pxn";

/// The leaf switches of all rails of a group.
std::vector<Network::Bundle> groups_of(const Platform& platform, int num_nodes) {
  const int size = platform.fabric.whole(nodes_per_group), rails = num_rails(platform);
  std::vector<Network::Bundle> groups;
  for (int node = 0; node < num_nodes; ++node) {
    if (node % size == 0)
      groups.push_back({"group" + std::to_string(groups.size()), "rail", {}, rails});
    groups.back().bandwidth +=
        node_bandwidth(platform, NodeId(node)) / (rails * platform.fabric.number(oversubscription));
  }
  return groups;
}

FabricPaths paths(const Platform& platform, int num_nodes) {
  const Fabric& fabric = platform.fabric;
  if (fabric.number(oversubscription) <= 1)
    return [](Network&, const NodeNics&, const NodeNics&) { return FabricPath{}; };
  return [groups = groups_of(platform, num_nodes), size = fabric.whole(nodes_per_group),
          rails = num_rails(platform)](Network& network, const NodeNics& from, const NodeNics& to) {
    const std::vector<int> source_rails = rails_of(from, rails), target_rails = rails_of(to, rails);
    const auto group_of = [&](NodeId node) {
      return node.index() / static_cast<std::size_t>(size);
    };
    const std::size_t source = group_of(from.node), target = group_of(to.node);
    FabricPath path;
    if (source == target && source_rails == target_rails) return path;
    network.pass(path.up, groups[source], source_rails, Network::Direction::up);
    network.pass(path.down, groups[target], target_rails, Network::Direction::down);
    return path;
  };
}

std::vector<int> relay(const Platform& platform, const NodeNics& from, const NodeNics& to) {
  if (!platform.fabric.is_set(pxn)) return {};
  return relayed_to_rails(platform, from, to);
}

std::string unevenness(const Fabric& fabric, int num_nodes) {
  const bool leaves_rails = !fabric.is_set(pxn) || num_nodes > fabric.number(nodes_per_group);
  return fabric.number(oversubscription) > 1 && leaves_rails
             ? "its rail switches are oversubscribed"
             : "";
}

std::pair<std::string, std::string> problem(const Platform& platform) {
  if (platform.fabric.whole(nodes_per_group) == 0)
    return {nodes_per_group,
            "rails need nodes_per_group: how many nodes share the leaf switches of their rails"};
  return problem_of_rails(platform, platform.fabric.is_set(pxn) ? pxn : nullptr);
}

std::vector<SwitchTier> switches(const Fabric& fabric) {
  return {{"group", fabric.whole(nodes_per_group)}};
}

std::vector<FabricWhatIf> what_ifs(const Fabric& fabric) {
  std::vector<FabricWhatIf> questions;
  const double taper = fabric.number(oversubscription);
  if (taper > 1) {
    questions.push_back(
        {"twice the uplinks of rail switches", oversubscription, std::max(1.0, taper / 2)});
    questions.push_back({"no oversubscription of rail switches", oversubscription, 1.0});
  }
  questions.push_back(fabric.is_set(pxn) ? FabricWhatIf{"no relay to other rails (PXN)", pxn, 0.0}
                                         : FabricWhatIf{"relay to other rails (PXN)", pxn, 1.0});
  return questions;
}

}  // namespace

/// Rail-optimised leaf switches: NIC i of every node of a group is on leaf i of that group ("NVIDIA DGX SuperPOD: next generation scalable
/// infrastructure", RA-11333-001, compute fabric). A leaf has uplinks of
///   sum of the group's NICs on its rail / oversubscription   bytes per second, each way,
/// to a spine that is never full. A message to the same rail of its group passes no uplink. One to another rail is relayed with `pxn`
/// (relayed_to_rails()); without it, and between different sets of rails, all of it crosses the spine.
FabricKind rails() {
  return {.name = "rails",
          .about = "NIC i of a group's nodes on leaf switch i, below a spine; with or without PXN",
          .keys = {{.name = nodes_per_group,
                    .label = "nodes per group of rails",
                    .type = FabricKey::Type::whole,
                    .least = 0,
                    .most = 1e6,
                    .counts_nodes = true},
                   {.name = oversubscription,
                    .label = "oversubscription of rail switches",
                    .fallback = 1.0,
                    .least = 1,
                    .most = 1e3},
                   {.name = pxn,
                    .label = "relay to other rails",
                    .type = FabricKey::Type::yes_no,
                    .fallback = 1.0}},
          .paths = paths,
          .unevenness = unevenness,
          .relay = relay,
          .separates_rails =
              [](const Fabric& fabric) {
                return !fabric.is_set(pxn) && fabric.number(oversubscription) > 1;
              },
          .problem = problem,
          .what_ifs = what_ifs,
          .switches = switches};
}

}  // namespace windtunnel::fabrics
