#include "scenario/cluster_shape.hpp"

#include <algorithm>
#include <numeric>

namespace windtunnel {

ClusterShape first_nodes(const Platform& platform, int nodes) {
  const int available = platform.available_nodes();
  const int used = available == 0 ? nodes : std::min(nodes, available);
  ClusterShape cluster;
  for (int node = 0; node < used; ++node)
    cluster.gpus_by_node.push_back(platform.type_of(NodeId{node}).gpus);
  return cluster;
}

std::optional<int> nodes_needed(const Platform& platform, std::int64_t ranks) {
  const int available = platform.available_nodes();
  const int most = available == 0 ? most_nodes_in_use : std::min(available, most_nodes_in_use);
  std::int64_t gpus = 0;
  for (int node = 0; node < most; ++node) {
    gpus += platform.type_of(NodeId{node}).gpus;
    if (gpus >= ranks) return node + 1;
  }
  return std::nullopt;
}

int total_gpus(const ClusterShape& cluster) {
  return std::accumulate(cluster.gpus_by_node.begin(), cluster.gpus_by_node.end(), 0);
}

std::string gpus_text(const ClusterShape& cluster) {
  const auto& gpus = cluster.gpus_by_node;
  const std::string nodes = std::to_string(gpus.size()) + (gpus.size() == 1 ? " node" : " nodes");
  const std::string total = std::to_string(total_gpus(cluster)) + " GPUs";
  const bool equal =
      std::adjacent_find(gpus.begin(), gpus.end(), std::not_equal_to<>()) == gpus.end();
  if (gpus.empty() || !equal) return nodes + " with " + total;
  return nodes + " * " + std::to_string(gpus.front()) + " = " + total;
}

}  // namespace windtunnel
