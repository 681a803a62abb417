#include "platform/network.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

std::string node_name(NodeId node) { return "node" + std::to_string(node.index()); }

/// The NICs that some GPUs use: GPU g of n uses NIC floor(g * nics / n), and those up to the next GPU's where there are more NICs
/// than GPUs.
std::set<int> nics_of(const Network::Endpoint& endpoint, const NodeType& type) {
  std::set<int> nics;
  for (const int gpu : endpoint.gpus) {
    WT_EXPECT(gpu >= 0 && gpu < type.gpus);
    const int first = gpu * type.nics / type.gpus;
    const int end = (gpu + 1) * type.nics / type.gpus;
    for (int nic = first; nic < std::max(first + 1, end); ++nic) nics.insert(nic);
  }
  return nics;
}

/// "0-2" for neighbours, "0,2" otherwise.
std::string text_of(const std::set<int>& nics) {
  const int first = *nics.begin(), last = *nics.rbegin();
  if (nics.size() > 1 && last - first + 1 == static_cast<int>(nics.size()))
    return std::to_string(first) + "-" + std::to_string(last);
  std::string text;
  for (const int nic : nics) text += (text.empty() ? "" : ",") + std::to_string(nic);
  return text;
}

}  // namespace

Route Network::route(const Endpoint& from, const Endpoint& to) {
  WT_EXPECT(platform_ != nullptr);
  WT_EXPECT(from.node != to.node);
  std::vector<LinkId> up = node_links(from, Direction::up), down;
  const std::vector<LinkId>& target = node_links(to, Direction::down);
  if (const std::optional<LinkId> own = own_link(from.node, to.node)) up.push_back(*own);
  const Fabric& fabric = platform_->fabric;
  const FabricPath path = fabric.kind->path(*platform_, num_nodes_, from.node, to.node);
  for (const FabricLink& passed : path.up) up.push_back(link(passed.name, passed.bandwidth));
  for (const FabricLink& passed : path.down) down.push_back(link(passed.name, passed.bandwidth));
  down.insert(down.end(), target.rbegin(), target.rend());
  return {shared_path(std::move(up)), shared_path(std::move(down)), fabric.latency};
}

LinkId Network::add_link(BytesPerSecond bandwidth, std::string name) {
  links_.push_back({bandwidth, std::move(name)});
  return LinkId(links_.size() - 1);
}

PathId Network::add_path(std::vector<LinkId> links) {
  paths_.push_back(std::move(links));
  return PathId(paths_.size() - 1);
}

LinkId Network::link(const std::string& name, BytesPerSecond bandwidth) {
  if (const auto known = link_by_name_.find(name); known != link_by_name_.end())
    return known->second;
  return link_by_name_[name] = add_link(bandwidth, name);
}

PathId Network::shared_path(std::vector<LinkId> links) {
  if (const auto known = path_by_links_.find(links); known != path_by_links_.end())
    return known->second;
  const PathId path = add_path(links);
  path_by_links_.emplace(std::move(links), path);
  return path;
}

const std::vector<LinkId>& Network::node_links(const Endpoint& endpoint, Direction direction) {
  const auto [known, is_new] = links_of_endpoint_.try_emplace({endpoint, direction});
  if (is_new) known->second = new_node_links(endpoint, direction);
  return known->second;
}

std::vector<LinkId> Network::new_node_links(const Endpoint& endpoint, Direction direction) {
  const NodeType& type = platform_->type_of(endpoint.node);
  WT_EXPECT(!endpoint.gpus.empty());
  const std::string end = direction == Direction::up ? " up" : " down";
  const LinkId node =
      link(node_name(endpoint.node) + end, node_bandwidth(*platform_, endpoint.node));
  const std::set<int> nics = nics_of(endpoint, type);
  const int count = static_cast<int>(nics.size());
  if (count == type.nics) return {node};
  return {link(node_name(endpoint.node) + " nic" + text_of(nics) + end,
               type.effective_nic_rate() * count),
          node};
}

std::optional<LinkId> Network::own_link(NodeId from, NodeId to) {
  const std::optional<BytesPerSecond> bandwidth = own_bandwidth(*platform_, from, to);
  if (!bandwidth) return std::nullopt;
  return link(node_name(from) + "->" + node_name(to), *bandwidth);
}

std::optional<BytesPerSecond> own_bandwidth(const Platform& platform, NodeId from, NodeId to) {
  for (const LinkOverride& link : platform.link_overrides)
    if (link.from == from && link.to == to) return link.bandwidth;
  if (!platform.matrix) return std::nullopt;
  const BandwidthMatrix& matrix = *platform.matrix;
  if (from.index() >= matrix.rate.size() || to.index() >= matrix.rate.size()) return std::nullopt;
  return matrix.rate[from.index()][to.index()] * matrix.rails;
}

BytesPerSecond node_bandwidth(const Platform& platform, NodeId node) {
  const NodeType& type = platform.type_of(node);
  return type.effective_nic_rate() * type.nics;
}

}  // namespace windtunnel
