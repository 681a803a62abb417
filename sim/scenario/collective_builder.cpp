#include "scenario/collective_builder.hpp"

#include <algorithm>

#include "cost/collective_cost.hpp"

namespace windtunnel {
namespace {

int count(const std::vector<DeviceId>& members) { return static_cast<int>(members.size()); }

}  // namespace

double share_of(RingWork work) { return work == RingWork::all_reduce ? 1.0 : 0.5; }

Seconds in_node_ring(const Interconnect& wires, const std::vector<int>& gpus, Bytes payload,
                     RingWork work) {
  return work == RingWork::all_reduce ? in_node_all_reduce(wires, gpus, payload)
                                      : in_node_all_gather(wires, gpus, payload);
}

Collective CollectiveBuilder::flat(const std::vector<DeviceId>& members, Bytes payload,
                                   RingWork work) const {
  Collective collective;
  collective.members = members;
  const double ranks_a_device = device(members.front()).num_gpus();
  const Bytes volume =
      ring_all_reduce_volume(payload, count(members)) * (share_of(work) * ranks_a_device);
  collective.traffic_bytes = volume * static_cast<double>(members.size());
  const RingLayout layout = layout_of(members);
  const int nodes = static_cast<int>(layout.by_node.size());
  collective.fixed = in_node_part(members, layout, payload, work);
  if (nodes == 1) return collective;
  collective.latency = in_->platform->fabric.collective_latency *
                       (share_of(work) * ring_all_reduce_crossings(count(members), nodes));
  add_edges(collective, layout, volume);
  return collective;
}

Collective CollectiveBuilder::hierarchical(const std::vector<DeviceId>& members, Bytes payload,
                                           RingWork work) const {
  const RingLayout layout = layout_of(members);
  Collective collective = flat(members, payload, work);
  const int n = static_cast<int>(layout.by_node.size());
  if (n == 1 || n == count(members)) return collective;
  const double ranks_a_device = device(members.front()).num_gpus();
  const double halves = 2 * share_of(work);
  collective.fixed = Seconds{0};
  collective.latency =
      in_node_part(members, layout, payload, RingWork::scatter_or_gather) * halves +
      in_->platform->fabric.collective_latency * (share_of(work) * ring_all_reduce_crossings(n, n));
  collective.flows.clear();
  add_edges(collective, layout,
            ring_all_reduce_volume(payload, n) * (share_of(work) * ranks_a_device));
  return collective;
}

Collective CollectiveBuilder::gradient_ring(const std::vector<DeviceId>& members, Bytes payload,
                                            RingWork work) const {
  return in_->plan->parallel.gradient_ring == GradientRing::hierarchical
             ? hierarchical(members, payload, work)
             : flat(members, payload, work);
}

Collective CollectiveBuilder::sharded_ring(const std::vector<DeviceId>& members, Bytes payload,
                                           RingWork work) const {
  Collective collective = flat(members, payload, work);
  if (payload == Bytes{0}) return {collective.members, {}, {}, {}, {}};
  if (!collective.flows.empty())
    collective.latency =
        (in_->platform->fabric.latency + in_->platform->fabric.collective_latency) *
        (2 * share_of(work));
  return collective;
}

Collective CollectiveBuilder::tensor_ring(const std::vector<DeviceId>& members, Bytes payload,
                                          double repeats) const {
  const int ranks = in_->plan->parallel.tensor;
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

RingLayout CollectiveBuilder::layout_of(const std::vector<DeviceId>& members) const {
  std::vector<NodeId> nodes;
  nodes.reserve(members.size());
  for (const DeviceId member : members) nodes.push_back(device(member).node);
  return ring_layout(nodes);
}

Seconds CollectiveBuilder::in_node_part(const std::vector<DeviceId>& members,
                                        const RingLayout& layout, Bytes payload,
                                        RingWork work) const {
  Seconds longest{};
  for (const std::vector<std::size_t>& on_node : layout.by_node) {
    std::vector<int> gpus;
    for (const std::size_t member : on_node) gpus.push_back(device(members[member]).gpus.front());
    const NodeId node = device(members[on_node.front()]).node;
    const Interconnect& wires = (*in_->nodes)[node.index()].interconnect;
    longest = std::max(longest, in_node_ring(wires, gpus, payload, work));
  }
  return longest;
}

void CollectiveBuilder::add_edges(Collective& collective, const RingLayout& layout,
                                  Bytes volume) const {
  for (const RingEdge& edge : layout.edges) {
    const Route route = network_->route(endpoint(collective.members[edge.from]),
                                        endpoint(collective.members[edge.to]));
    collective.flows.push_back({route.up, route.down, volume * edge.share});
  }
}

}  // namespace windtunnel
