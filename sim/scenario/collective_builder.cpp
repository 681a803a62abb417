#include "scenario/collective_builder.hpp"

#include <algorithm>
#include <map>

#include "cost/collective_cost.hpp"

namespace windtunnel {
namespace {

/// The part of an all-reduce's volume and steps that the work has.
double share_of(RingWork work) { return work == RingWork::all_reduce ? 1.0 : 0.5; }

int count(const std::vector<DeviceId>& members) { return static_cast<int>(members.size()); }

}  // namespace

Collective CollectiveBuilder::flat(const std::vector<DeviceId>& members, Bytes payload,
                                   RingWork work) const {
  Collective collective;
  collective.members = members;
  const double ranks_a_device = device(members.front()).num_gpus();
  const Bytes volume =
      ring_all_reduce_volume(payload, count(members)) * (share_of(work) * ranks_a_device);
  collective.traffic_bytes = volume * static_cast<double>(members.size());
  const std::vector<NodeMembers> nodes = by_node(members);
  collective.fixed = in_node_part(nodes, payload, work);
  if (nodes.size() == 1) return collective;
  collective.latency =
      in_->platform->fabric.collective_latency *
      (share_of(work) * ring_all_reduce_crossings(count(members), static_cast<int>(nodes.size())));
  add_edges(collective, nodes, volume);
  return collective;
}

Collective CollectiveBuilder::hierarchical(const std::vector<DeviceId>& members, Bytes payload,
                                           RingWork work) const {
  const std::vector<NodeMembers> nodes = by_node(members);
  Collective collective = flat(members, payload, work);
  if (nodes.size() == 1 || nodes.size() == members.size()) return collective;
  const int n = static_cast<int>(nodes.size());
  const double ranks_a_device = device(members.front()).num_gpus();
  const double halves = 2 * share_of(work);
  collective.fixed = Seconds{0};
  collective.latency =
      in_node_part(nodes, payload, RingWork::scatter_or_gather) * halves +
      in_->platform->fabric.collective_latency * (share_of(work) * ring_all_reduce_crossings(n, n));
  collective.flows.clear();
  add_edges(collective, nodes,
            ring_all_reduce_volume(payload, n) * (share_of(work) * ranks_a_device));
  return collective;
}

Collective CollectiveBuilder::gradient_ring(const std::vector<DeviceId>& members, Bytes payload,
                                            RingWork work) const {
  return in_->plan->parallel.gradient_ring == GradientRing::hierarchical
             ? hierarchical(members, payload, work)
             : flat(members, payload, work);
}

Collective CollectiveBuilder::tensor_ring(const std::vector<DeviceId>& members, Bytes payload,
                                          int count) const {
  const int ranks = in_->plan->parallel.tensor;
  const double repeats = count;
  Collective collective;
  collective.members = members;
  const Bytes volume = ring_all_reduce_volume(payload * repeats, ranks);
  collective.traffic_bytes = volume * static_cast<double>(ranks);
  collective.latency = in_->platform->fabric.collective_latency *
                       (ring_all_reduce_crossings(ranks, in_->plan->parts) * repeats);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Route route =
        network_->route(endpoint(members[i]), endpoint(members[(i + 1) % members.size()]));
    collective.flows.push_back({route.up, route.down, volume});
  }
  return collective;
}

std::vector<CollectiveBuilder::NodeMembers> CollectiveBuilder::by_node(
    const std::vector<DeviceId>& members) const {
  std::vector<NodeMembers> nodes;
  std::map<NodeId, std::size_t> index;
  for (const DeviceId member : members) {
    const auto [found, is_new] = index.try_emplace(device(member).node, nodes.size());
    if (is_new) nodes.push_back({device(member).node, {}});
    nodes[found->second].devices.push_back(member);
  }
  return nodes;
}

Seconds CollectiveBuilder::in_node_part(const std::vector<NodeMembers>& nodes, Bytes payload,
                                        RingWork work) const {
  Seconds longest{};
  for (const NodeMembers& node : nodes) {
    std::vector<int> gpus;
    for (const DeviceId member : node.devices) gpus.push_back(device(member).gpus.front());
    const Interconnect& wires = (*in_->nodes)[node.node.index()].interconnect;
    longest =
        std::max(longest, work == RingWork::all_reduce ? in_node_all_reduce(wires, gpus, payload)
                                                       : in_node_all_gather(wires, gpus, payload));
  }
  return longest;
}

void CollectiveBuilder::add_edges(Collective& collective, const std::vector<NodeMembers>& nodes,
                                  Bytes volume) const {
  for (std::size_t i = 0; i < nodes.size(); ++i)
    add_edge(collective, nodes[i], nodes[(i + 1) % nodes.size()], volume);
}

/// The ring's edge between two nodes, spread over their members.
void CollectiveBuilder::add_edge(Collective& collective, const NodeMembers& from,
                                 const NodeMembers& to, Bytes volume) const {
  const std::size_t lanes = std::max(from.devices.size(), to.devices.size());
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const Route route = network_->route(endpoint(from.devices[lane % from.devices.size()]),
                                        endpoint(to.devices[lane % to.devices.size()]));
    collective.flows.push_back({route.up, route.down, volume / static_cast<double>(lanes)});
  }
}

}  // namespace windtunnel
