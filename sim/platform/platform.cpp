#include "platform/platform.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "core/contracts.hpp"

namespace windtunnel {

const NodeType& Platform::type_of(NodeId node) const {
  std::uint32_t first = 0;
  for (const NodeType& type : node_types) {
    const auto count = static_cast<std::uint32_t>(type.count);
    if (count == 0 || node.index() < first + count) return type;
    first += count;
  }
  WT_UNREACHABLE();
}

int Platform::available_nodes() const {
  int nodes = 0;
  for (const NodeType& type : node_types) {
    if (type.count == 0) return 0;
    nodes += type.count;
  }
  return nodes;
}

namespace {

NodeType domain_of(const NodeType& node, int nodes, int count) {
  NodeType domain = node;
  domain.gpus = node.gpus * nodes;
  domain.nics = node.nics * nodes;
  domain.count = count;
  domain.trays = nodes;
  domain.nic_of_gpu.clear();
  for (int tray = 0; tray < nodes; ++tray)
    for (std::vector<int> nics : node.nic_of_gpu) {
      for (int& nic : nics) nic += tray * node.nics;
      domain.nic_of_gpu.push_back(std::move(nics));
    }
  return domain;
}

}  // namespace

Platform in_domains(const Platform& platform, int nodes) {
  if (platform.domain_nodes == 1) return platform;
  WT_EXPECT(platform.node_types.size() == 1 && nodes > 0);
  const NodeType node = platform.node_types.front();
  const int whole = nodes / platform.domain_nodes, left = nodes % platform.domain_nodes;
  Platform result = platform;
  result.node_types.clear();
  if (whole > 0) result.node_types.push_back(domain_of(node, platform.domain_nodes, whole));
  if (left > 0) result.node_types.push_back(domain_of(node, left, 1));
  result.fabric.scale_nodes(1.0 / platform.domain_nodes);
  return result;
}

Platform machine_of(const Platform& job) {
  Platform machine = job;
  if (machine.domain_nodes == 1) return machine;
  NodeType& tray = machine.node_types.front();
  tray.gpus /= tray.trays;
  tray.nics /= tray.trays;
  if (!tray.nic_of_gpu.empty()) tray.nic_of_gpu.resize(static_cast<std::size_t>(tray.gpus));
  tray.trays = 1;
  tray.count = 0;
  machine.node_types.resize(1);
  machine.fabric.scale_nodes(machine.domain_nodes);
  return machine;
}

bool Platform::has_node(NodeId node, int nodes) const {
  return cluster ? std::binary_search(cluster_nodes.begin(), cluster_nodes.begin() + nodes, node)
                 : static_cast<int>(node.index()) < nodes;
}

Platform on_nodes(const Platform& platform, const std::vector<NodeId>& nodes) {
  WT_EXPECT(platform.domain_nodes == 1 && !platform.cluster);
  Platform job = platform;
  job.cluster = std::make_shared<const Platform>(platform);
  job.cluster_nodes = nodes;
  job.node_types.clear();
  job.link_overrides.clear();
  job.faults.clear();
  std::map<NodeId, NodeId> numbers;
  const NodeType* last = nullptr;
  for (const NodeId node : nodes) {
    const NodeType* const type = &platform.type_of(node);
    if (type != last) {
      job.node_types.push_back(*type);
      job.node_types.back().count = 0;
    }
    ++job.node_types.back().count;
    last = type;
    numbers.emplace(node, NodeId(numbers.size()));
  }
  for (const NicFault& fault : platform.faults)
    if (const auto node = numbers.find(fault.node); node != numbers.end())
      job.faults.push_back({node->second, fault.nic, fault.share});
  for (const LinkOverride& link : platform.link_overrides)
    if (numbers.contains(link.from) && numbers.contains(link.to))
      job.link_overrides.push_back({numbers.at(link.from), numbers.at(link.to), link.bandwidth});
  if (!platform.matrix) return job;
  job.matrix->rate.clear();
  for (const NodeId from : nodes) {
    std::vector<BytesPerSecond>& row = job.matrix->rate.emplace_back();
    for (const NodeId to : nodes) row.push_back(platform.matrix->rate[from.index()][to.index()]);
  }
  return job;
}

std::vector<std::size_t> first_gpus(const std::vector<NodeType>& nodes) {
  std::vector<std::size_t> first{0};
  for (const NodeType& node : nodes)
    first.push_back(first.back() + static_cast<std::size_t>(node.gpus));
  return first;
}

int num_trays(const std::vector<NodeType>& nodes) {
  return std::accumulate(nodes.begin(), nodes.end(), 0,
                         [](int sum, const NodeType& node) { return sum + node.trays; });
}

std::string unevenness(const Platform& platform, int nodes) {
  if (nodes < 2) return {};
  const auto in_use = [nodes](NodeId node) { return static_cast<int>(node.index()) < nodes; };
  if (platform.matrix) return "the rates between its nodes are measured pair by pair";
  for (const LinkOverride& link : platform.link_overrides)
    if (in_use(link.from) && in_use(link.to)) return "some of its links have rates of their own";
  for (const NicFault& fault : platform.faults)
    if (in_use(fault.node)) return "some of its NICs have faults";
  if (!platform.neighbours.empty()) return "neighbours use some of its links";
  const Fabric& fabric = platform.fabric;
  if (std::string why = fabric.kind->unevenness(fabric, platform.extent(nodes)); !why.empty())
    return why;
  const NodeType& first = platform.type_of(NodeId{0});
  bool several_types = false;
  for (int node = 1; node < nodes; ++node) {
    const NodeType& type = platform.type_of(NodeId{node});
    if (type.nics != first.nics || type.effective_nic_rate() != first.effective_nic_rate())
      return "its nodes differ in their NICs";
    if (!type.nic_of_gpu.empty()) return "its GPUs are given their NICs one by one";
    several_types = several_types || &type != &first;
  }
  return several_types ? "its nodes are of several types" : "";
}

int Platform::num_nodes(int asked_for) const {
  int counted = 0;
  for (const NodeType& type : node_types) counted += type.count;
  return available_nodes() == 0 ? std::max(counted, asked_for) : counted;
}

}  // namespace windtunnel
