#include "lower/collective_builder.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <numeric>

#include "cost/collective_cost.hpp"

namespace windtunnel {

Collective CollectiveBuilder::made_of(const Steps& steps, const std::vector<DeviceId>& members,
                                      Bytes payload, RingWork work, double copies) const {
  const RingLayout layout = layout_of(members);
  CollectiveTask task;
  task.copies_per_member = copies;
  task.work = work;
  task.payload = payload;
  task.ranks_per_member = device(members.front()).num_gpus();
  task.layout = &layout;
  task.hop = in_->platform->fabric.collective_latency;
  task.reduced_in_switch =
      std::all_of(members.begin(), members.end(), [this](const DeviceId member) {
        return (*in_->nodes)[device(member).node.index()].interconnect.reduces_in_switch;
      });
  task.in_node = [&](Bytes bytes, RingWork part) {
    return in_node_part(members, layout, bytes, part, copies);
  };
  task.node_rate = [&] {
    return slowest_step(
        *in_->platform, layout, nodes_of(members),
        [&](std::size_t i) -> const std::vector<int>& { return device(members[i]).gpus; });
  };
  const CollectiveSteps made = steps(task);
  Collective collective{members, made.fixed, made.latency, {}, made.traffic, payload};
  for (const MemberFlow& flow : made.flows) {
    const Route route = routes_->between(members[flow.from], members[flow.to]);
    collective.flows.push_back({route.up, route.down, flow.bytes});
  }
  return collective;
}

Collective CollectiveBuilder::flat(const std::vector<DeviceId>& members, Bytes payload,
                                   RingWork work, double copies) const {
  return made_of(flat_ring, members, payload, work, copies);
}

Collective CollectiveBuilder::gradients(const std::vector<DeviceId>& members, Bytes payload,
                                        RingWork work, double copies) const {
  return made_of(collective_algorithm(in_->plan->parallel.gradient_ring).steps, members, payload,
                 work, copies);
}

Collective CollectiveBuilder::sharded_ring(const std::vector<DeviceId>& members, Bytes payload,
                                           RingWork work, double copies) const {
  Collective collective = flat(members, payload, work, copies);
  if (payload == Bytes{0}) return {collective.members, {}, {}, {}, {}, {}};
  if (!collective.flows.empty())
    collective.latency =
        (in_->platform->fabric.latency + in_->platform->fabric.collective_latency) *
        (2 * share_of(work));
  return collective;
}

Collective CollectiveBuilder::exchange(const std::vector<DeviceId>& members,
                                       const Operation& operation, const ExchangeBytes& bytes,
                                       const ExpertGroup& group) const {
  Collective collective;
  collective.members = members;
  const RingLayout layout = layout_of(members);
  const NodeType& node = (*in_->nodes)[device(members.front()).node.index()];
  const ExchangeTime time = exchange_time(bytes, group, node, in_->platform->fabric);
  collective.fixed = time.fixed * operation.share;
  collective.latency = time.latency * operation.share;
  std::vector<double> ranks_on;
  for (const std::vector<std::size_t>& on_node : layout.by_node) {
    ranks_on.push_back(0);
    for (const std::size_t member : on_node) ranks_on.back() += device(members[member]).num_gpus();
  }
  const double ranks = std::accumulate(ranks_on.begin(), ranks_on.end(), 0.0);
  collective.payload = operation.payload;
  collective.traffic_bytes = bytes.sent * (ranks * operation.share);
  if (layout.num_nodes() == 1) return collective;
  // A rank sends to a node in proportion to the ranks there. `bytes` are those of a rank with the fewest beside it, who sends most away.
  const double most_away = ranks - *std::min_element(ranks_on.begin(), ranks_on.end());
  for (const std::vector<std::size_t>& here : layout.by_node)
    for (std::size_t i = 0; i < here.size(); ++i)
      for (std::size_t other = 0; other < layout.by_node.size(); ++other) {
        const std::vector<std::size_t>& there = layout.by_node[other];
        if (&here == &there) continue;
        const std::size_t from = here[i], to = there[i % there.size()];
        const Route route = routes_->between(members[from], members[to]);
        const double share =
            operation.share * device(members[from]).num_gpus() * (ranks_on[other] / most_away);
        collective.flows.push_back({route.up, route.down, bytes.between_nodes * share});
      }
  return collective;
}

Collective CollectiveBuilder::tensor_ring(const std::vector<DeviceId>& members, Bytes payload,
                                          double repeats) const {
  const int ranks = in_->plan->parallel.tensor;
  Collective collective;
  collective.members = members;
  const Bytes volume = ring_all_reduce_volume(payload * repeats, ranks);
  collective.traffic_bytes = volume * static_cast<double>(ranks);
  collective.latency =
      in_->platform->fabric.collective_latency *
      (ring_all_reduce_crossings(ranks, in_->plan->nodes_per_tensor_group) * repeats);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Route route = routes_->between(members[i], members[(i + 1) % members.size()]);
    collective.flows.push_back({route.up, route.down, volume});
  }
  return collective;
}

std::vector<NodeId> CollectiveBuilder::nodes_of(const std::vector<DeviceId>& members) const {
  std::vector<NodeId> nodes;
  nodes.reserve(members.size());
  for (const DeviceId member : members) nodes.push_back(device(member).node);
  return nodes;
}

RingLayout CollectiveBuilder::layout_of(const std::vector<DeviceId>& members) const {
  return ring_layout(nodes_of(members));
}

Seconds CollectiveBuilder::in_node_part(const std::vector<DeviceId>& members,
                                        const RingLayout& layout, Bytes payload, RingWork work,
                                        double copies) const {
  Seconds longest{};
  for (const std::vector<std::size_t>& on_node : layout.by_node) {
    std::vector<int> gpus;
    for (const std::size_t member : on_node) {
      const std::vector<int>& all = device(members[member]).gpus;
      const auto taking_part = static_cast<std::ptrdiff_t>(std::ceil(copies));
      gpus.insert(gpus.end(), all.begin(), all.begin() + std::min(taking_part, std::ssize(all)));
    }
    const NodeId node = device(members[on_node.front()]).node;
    const Interconnect& wires = (*in_->nodes)[node.index()].interconnect;
    longest = std::max(longest, in_node_ring(wires, gpus, payload, work));
  }
  return longest;
}

}  // namespace windtunnel
