#include "platform/fabric_parts.hpp"

namespace windtunnel::fabrics {
namespace {

constexpr const char* nodes_per_group = "nodes_per_group";

/// A rail switch is never full.
FabricPaths paths(const Platform& /*platform*/, int /*num_nodes*/) {
  return [](Network&, const NodeNics&, const NodeNics&) { return FabricPath{}; };
}

std::string unevenness(const Fabric& /*fabric*/, int /*num_nodes*/) { return {}; }

std::pair<std::string, std::string> problem(const Platform& platform) {
  if (platform.fabric.whole(nodes_per_group) == 0)
    return {nodes_per_group,
            "rails need nodes_per_group: how many nodes share the switches of their rails"};
  return problem_of_rails(platform, "kind");
}

std::optional<int> most_nodes(const Platform& platform) {
  return platform.fabric.whole(nodes_per_group);
}

}  // namespace

/// Rails without a spine: NIC i of every node is on switch i, and nothing joins the switches (W. Wang, M. Ghobadi, K. Shakeri, Y. Zhang &
/// N. Hasani, "Rail-only: a low-cost high-performance network for training LLMs with trillion parameters", arXiv:2307.12169, 2023). A
/// message to another rail is relayed over NVLink in its node (relayed_to_rails()). One group joins all nodes of the job.
FabricKind rails_only() {
  return {
      .name = "rails_only",
      .about = "NIC i of all nodes on switch i and no spine: other rails are reached over NVLink",
      .keys = {{.name = nodes_per_group,
                .label = "nodes per group of rails",
                .type = FabricKey::Type::whole,
                .least = 0,
                .most = 1e6,
                .counts_nodes = true}},
      .paths = paths,
      .unevenness = unevenness,
      .relay = relayed_to_rails,
      .problem = problem,
      .most_nodes = most_nodes};
}

}  // namespace windtunnel::fabrics
