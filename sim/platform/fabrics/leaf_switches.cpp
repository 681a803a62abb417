#include <algorithm>

#include "platform/network.hpp"

namespace windtunnel::fabrics {
namespace {

constexpr const char* nodes_per_leaf = "nodes_per_leaf";
constexpr const char* oversubscription = "oversubscription";

/// What the uplinks of leaf switch `leaf` carry, one way: the NICs of its nodes over the oversubscription. Of `num_nodes` nodes in
/// all the last leaf may have fewer than the others.
BytesPerSecond leaf_bandwidth(const Platform& platform, int num_nodes, int leaf) {
  const int size = static_cast<int>(platform.fabric.number(nodes_per_leaf));
  const int end = std::min((leaf + 1) * size, num_nodes);
  BytesPerSecond nics{};
  for (int node = leaf * size; node < end; ++node) nics += node_bandwidth(platform, NodeId(node));
  return nics / platform.fabric.number(oversubscription);
}

/// Whether traffic between leaf switches can be slower than the NICs.
bool is_tapered(const Fabric& fabric) {
  return fabric.number(nodes_per_leaf) > 0 && fabric.number(oversubscription) > 1;
}

FabricPath path(const Platform& platform, int num_nodes, NodeId from, NodeId to) {
  const Fabric& fabric = platform.fabric;
  if (!is_tapered(fabric)) return {};
  const auto leaf_of = [&fabric](NodeId node) {
    return static_cast<int>(node.index()) / static_cast<int>(fabric.number(nodes_per_leaf));
  };
  const int source = leaf_of(from), target = leaf_of(to);
  if (source == target) return {};
  const auto link = [&](int leaf, const char* end) {
    return FabricLink{"leaf" + std::to_string(leaf) + end,
                      leaf_bandwidth(platform, num_nodes, leaf)};
  };
  return {{link(source, " up")}, {link(target, " down")}};
}

std::string unevenness(const Fabric& fabric, int num_nodes) {
  return is_tapered(fabric) && num_nodes > fabric.number(nodes_per_leaf)
             ? "its leaf switches are oversubscribed"
             : "";
}

std::pair<std::string, std::string> problem(const Fabric& fabric) {
  if (fabric.number(oversubscription) <= 1 || fabric.number(nodes_per_leaf) > 0) return {};
  return {oversubscription, "an oversubscribed fabric needs \"nodes_per_leaf\""};
}

std::vector<FabricWhatIf> what_ifs(const Fabric& fabric) {
  const double taper = fabric.number(oversubscription);
  if (taper <= 1) return {};
  return {{"twice the uplinks of leaf switches", oversubscription, std::max(1.0, taper / 2)},
          {"no oversubscription of leaf switches", oversubscription, 1}};
}

}  // namespace

/// Two levels: nodes under leaf switches, whose uplinks carry 1/oversubscription of what their nodes can send; above them nothing
/// is ever full. Without nodes_per_leaf nothing is.
FabricKind leaf_switches() {
  return {.name = "leaf_switches",
          .keys = {{.name = nodes_per_leaf,
                    .label = "nodes per leaf switch",
                    .fallback = 0,
                    .least = 0,
                    .most = 1e6,
                    .is_whole = true,
                    .matters = [](const Fabric& f) { return f.number(oversubscription) > 1; }},
                   {.name = oversubscription,
                    .label = "oversubscription of leaf switches",
                    .fallback = 1,
                    .least = 1,
                    .most = 1e3}},
          .path = path,
          .unevenness = unevenness,
          .problem = problem,
          .what_ifs = what_ifs};
}

}  // namespace windtunnel::fabrics
