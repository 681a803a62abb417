#include "scenario/cluster_shape.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/contracts.hpp"

namespace windtunnel {

ClusterShape first_nodes(const Platform& platform, int nodes) {
  const int available = platform.available_nodes();
  const auto used = static_cast<std::size_t>(available == 0 ? nodes : std::min(nodes, available));
  ClusterShape cluster;
  for (const NodeType& type : platform.node_types) {
    const std::size_t left = used - cluster.gpus_by_node.size();
    cluster.gpus_by_node.insert(
        cluster.gpus_by_node.end(),
        type.count == 0 ? left : std::min(left, static_cast<std::size_t>(type.count)), type.gpus);
  }
  return cluster;
}

std::vector<NodeType> types_of_nodes(const Platform& platform, int nodes) {
  const auto used = static_cast<std::size_t>(nodes);
  std::vector<NodeType> types;
  types.reserve(used);
  for (const NodeType& type : platform.node_types) {
    const std::size_t left = used - types.size();
    NodeType bare = type;
    bare.device.sources.clear();
    if (bare.device.codecs) bare.device.codecs->sources.clear();
    types.insert(types.end(),
                 type.count == 0 ? left : std::min(left, static_cast<std::size_t>(type.count)),
                 bare);
  }
  WT_ENSURE(types.size() == used);
  return types;
}

int most_nodes(const Platform& platform) {
  const int most = platform.num_nodes(most_nodes_in_use);
  const FabricKind& kind = *platform.fabric.kind;
  return kind.most_nodes ? std::min(most, kind.most_nodes(platform).value_or(most)) : most;
}

std::optional<int> nodes_needed(const Platform& platform, std::int64_t ranks) {
  std::int64_t nodes = 0;
  for (const NodeType& type : platform.node_types) {
    if (type.gpus == 0) continue;  // not known
    const std::int64_t most = most_nodes_in_use - nodes;
    const std::int64_t count = type.count == 0 ? most : std::min<std::int64_t>(type.count, most);
    if (ranks <= count * type.gpus)
      return static_cast<int>(nodes +
                              std::max<std::int64_t>(1, (ranks + type.gpus - 1) / type.gpus));
    nodes += count;
    ranks -= count * type.gpus;
  }
  return std::nullopt;
}

int total_gpus(const ClusterShape& cluster) {
  return std::accumulate(cluster.gpus_by_node.begin(), cluster.gpus_by_node.end(), 0);
}

std::vector<std::string> absent_node_warnings(const Platform& platform, int nodes) {
  std::vector<std::string> warnings;
  const auto number = [&](int node) { return platform.in_cluster(NodeId(node)).index(); };
  const auto warn = [&](const char* key, NodeId node) {
    if (platform.has_node(node, nodes)) return;
    std::string warning = std::string(key) + " of node " + std::to_string(node.index()) +
                          " change nothing: the job has nodes " + std::to_string(number(0)) +
                          " to " + std::to_string(number(nodes - 1));
    if (std::ranges::find(warnings, warning) == warnings.end())
      warnings.push_back(std::move(warning));
  };
  const Platform& cluster = platform.cluster ? *platform.cluster : platform;
  for (const NicFault& fault : cluster.faults) warn("faults", fault.node);
  for (const LinkOverride& link : cluster.link_overrides) {
    const auto [first, last] = std::minmax(link.from, link.to);
    warn("link_overrides", platform.has_node(last, nodes) ? first : last);
  }
  return warnings;
}

std::string gpus_text(const ClusterShape& cluster) {
  const auto& gpus = cluster.gpus_by_node;
  const std::string nodes = std::to_string(gpus.size()) + (gpus.size() == 1 ? " node" : " nodes");
  const std::string total = std::to_string(total_gpus(cluster)) + " GPUs";
  const bool equal = std::ranges::adjacent_find(gpus, std::not_equal_to<>()) == gpus.end();
  if (gpus.empty() || !equal) return nodes + " with " + total;
  return nodes + " * " + std::to_string(gpus.front()) + " = " + total;
}

}  // namespace windtunnel
