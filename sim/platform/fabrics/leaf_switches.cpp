#include <algorithm>

#include "platform/fabric_parts.hpp"

namespace windtunnel::fabrics {
namespace {

constexpr const char* nodes_per_leaf = "nodes_per_leaf";
constexpr const char* oversubscription = "oversubscription";

std::vector<SwitchTier> tiers_of(const Fabric& fabric) {
  if (fabric.whole(nodes_per_leaf) == 0) return {};
  return {{"leaf", fabric.whole(nodes_per_leaf), fabric.number(oversubscription)}};
}

FabricPaths paths(const Platform& platform, int num_nodes) {
  return tree_paths(platform, num_nodes, tiers_of(platform.fabric));
}

std::string unevenness(const Fabric& fabric, int num_nodes) {
  return can_fill(tiers_of(fabric), num_nodes) ? "its leaf switches are oversubscribed" : "";
}

std::pair<std::string, std::string> problem(const Platform& platform) {
  const Fabric& fabric = platform.fabric;
  if (fabric.number(oversubscription) <= 1 || fabric.number(nodes_per_leaf) > 0) return {};
  return {oversubscription, "an oversubscribed fabric needs \"nodes_per_leaf\""};
}

std::vector<FabricWhatIf> what_ifs(const Fabric& fabric) {
  const double taper = fabric.number(oversubscription);
  if (taper <= 1) return {};
  return {{"twice the uplinks of leaf switches", oversubscription, std::max(1.0, taper / 2)},
          {"no oversubscription of leaf switches", oversubscription, 1.0}};
}

}  // namespace

/// Two levels: nodes under leaf switches, whose uplinks carry 1/oversubscription of what their nodes can send; above them nothing
/// is ever full. Without nodes_per_leaf nothing is.
FabricKind leaf_switches() {
  return {
      .name = "leaf_switches",
      .about =
          "leaf switches below a core without limits; with nodes_per_leaf their uplinks have one",
      .keys = {{.name = nodes_per_leaf,
                .label = "nodes per leaf switch",
                .type = FabricKey::Type::whole,
                .least = 0,
                .most = 1e6,
                .counts_nodes = true,
                .matters = [](const Fabric& f) { return f.number(oversubscription) > 1; }},
               {.name = oversubscription,
                .label = "oversubscription of leaf switches",
                .fallback = 1.0,
                .least = 1,
                .most = 1e3}},
      .paths = paths,
      .unevenness = unevenness,
      .problem = problem,
      .what_ifs = what_ifs,
      .switches = tiers_of};
}

}  // namespace windtunnel::fabrics
