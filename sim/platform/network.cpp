#include "platform/network.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/contracts.hpp"
#include "platform/nics.hpp"

namespace windtunnel {
namespace {

std::string node_name(NodeId node) { return "node" + std::to_string(node.index()); }

/// Of the names of links, by direction.
constexpr std::array ends{" up", " down"};

/// "0-2" for neighbours, "0,2" otherwise.
std::string text_of(const std::vector<int>& nics) {
  const int first = nics.front(), last = nics.back();
  if (nics.size() > 1 && last - first + 1 == static_cast<int>(nics.size()))
    return std::to_string(first) + "-" + std::to_string(last);
  std::string text;
  for (const int nic : nics) text += (text.empty() ? "" : ",") + std::to_string(nic);
  return text;
}

}  // namespace

std::vector<int> nics_of(const std::vector<int>& gpus, const NodeType& type) {
  std::vector<int> nics;
  for (const int gpu : gpus) {
    WT_EXPECT(gpu >= 0 && gpu < type.gpus);
    const int first = gpu * type.nics / type.gpus;
    const int end = (gpu + 1) * type.nics / type.gpus;
    for (int nic = first; nic < std::max(first + 1, end); ++nic) nics.push_back(nic);
  }
  std::sort(nics.begin(), nics.end());
  nics.erase(std::unique(nics.begin(), nics.end()), nics.end());
  return nics;
}

Network::Attachment Network::attach(NodeId node, const std::vector<int>& gpus) {
  WT_EXPECT(platform_ != nullptr);
  WT_EXPECT(!gpus.empty());
  std::vector<int> nics = nics_of(gpus, platform_->type_of(node));
  if (node.index() >= ports_.size()) ports_.resize(node.index() + std::size_t{1});
  std::vector<Port>& ports = ports_[node.index()].ports;
  const auto known =
      std::find_if(ports.begin(), ports.end(), [&](const Port& port) { return port.nics == nics; });
  const auto number = static_cast<std::size_t>(known - ports.begin());
  if (known == ports.end()) ports.push_back({std::move(nics), {}});
  return {node, number};
}

Route Network::route(const Attachment& from, const Attachment& to) {
  WT_EXPECT(from.node != to.node);
  const Fabric& fabric = platform_->fabric;
  Way& source = way(from, Direction::up);
  Way& target = way(to, Direction::down);
  const std::optional<LinkId> own = own_link(from.node, to.node);
  const FabricPath path = fabric.kind->path(*platform_, num_nodes_, from.node, to.node);
  if (!own && path.up.empty() && path.down.empty()) {
    const PathId up = path_of(source);
    return {up, path_of(target), fabric.latency};
  }
  std::vector<LinkId> up = source.links, down;
  if (own) up.push_back(*own);
  for (const FabricLink& passed : path.up) up.push_back(link(passed.name, passed.bandwidth));
  for (const FabricLink& passed : path.down) down.push_back(link(passed.name, passed.bandwidth));
  down.insert(down.end(), target.links.begin(), target.links.end());
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

std::optional<LinkId> Network::slowest_link(std::initializer_list<PathId> paths) const {
  std::optional<LinkId> slowest;
  for (const PathId each : paths)
    for (const LinkId link : path(each))
      if (!slowest || links_[link.index()].bandwidth < links_[slowest->index()].bandwidth)
        slowest = link;
  return slowest;
}

BytesPerSecond Network::rate_alone(std::initializer_list<PathId> paths) const {
  const std::optional<LinkId> slowest = slowest_link(paths);
  return slowest ? links_[slowest->index()].bandwidth
                 : BytesPerSecond{std::numeric_limits<double>::infinity()};
}

LinkId Network::link(const std::string& name, BytesPerSecond bandwidth) {
  if (const auto known = link_by_name_.find(name); known != link_by_name_.end())
    return known->second;
  return link_by_name_[name] = add_link(bandwidth, name);
}

PathId Network::shared_path(std::vector<LinkId> links) {
  const auto place = path_by_links_.lower_bound(links);
  if (place != path_by_links_.end() && place->first == links) return place->second;
  const PathId path = add_path(links);
  path_by_links_.emplace_hint(place, std::move(links), path);
  return path;
}

Network::Way& Network::way(const Attachment& at, Direction direction) {
  Way& way = ports_[at.node.index()].ports[at.port].ways[static_cast<std::size_t>(direction)];
  if (way.links.empty()) way.links = new_links(at, direction);
  return way;
}

std::vector<LinkId> Network::new_links(const Attachment& at, Direction direction) {
  const NodeType& type = platform_->type_of(at.node);
  const LinkId node = node_link(at.node, direction);
  const std::vector<int>& nics = ports_[at.node.index()].ports[at.port].nics;
  const int count = static_cast<int>(nics.size());
  if (count == type.nics) return {node};
  const LinkId some =
      add_link(type.effective_nic_rate() * count, node_name(at.node) + " nic" + text_of(nics) +
                                                      ends[static_cast<std::size_t>(direction)]);
  if (direction == Direction::up) return {some, node};
  return {node, some};
}

LinkId Network::node_link(NodeId node, Direction direction) {
  std::optional<LinkId>& known = ports_[node.index()].all_nics[static_cast<std::size_t>(direction)];
  if (!known)
    known = add_link(node_bandwidth(*platform_, node),
                     node_name(node) + ends[static_cast<std::size_t>(direction)]);
  return *known;
}

PathId Network::path_of(Way& way) {
  if (!way.path) way.path = add_path(way.links);
  return *way.path;
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
