#include "search/placement_flows.hpp"

#include <algorithm>
#include <limits>

namespace windtunnel {
namespace {

/// The longest of the parts of a ring inside nodes.
Seconds in_node_part(const PlacementTables& tables, const std::vector<int>& slots,
                     const RingLayout& layout, Bytes payload, RingWork work) {
  Seconds longest{};
  for (const std::vector<std::size_t>& on_node : layout.by_node) {
    if (on_node.size() < 2) continue;
    std::vector<int> gpus;
    for (const std::size_t member : on_node)
      gpus.push_back(tables.slot(slots[member]).gpus.front());
    const Interconnect& wires = tables.node_type(slots[on_node.front()]).interconnect;
    longest = std::max(longest, in_node_ring(wires, gpus, payload, work));
  }
  return longest;
}

/// Whether no two slots are on one node.
bool on_own_nodes(const PlacementTables& tables, const std::vector<int>& slots,
                  std::vector<int>& node_members) {
  const auto node = [&](int slot) { return tables.slot(slot).node.index(); };
  bool are_own = true;
  for (const int slot : slots) {
    if (node(slot) >= node_members.size()) node_members.resize(node(slot) + std::size_t{1});
    are_own &= ++node_members[node(slot)] == 1;
  }
  for (const int slot : slots) node_members[node(slot)] = 0;
  return are_own;
}

bool reduced_in_switch(const PlacementTables& tables, const std::vector<int>& slots) {
  return std::all_of(slots.begin(), slots.end(), [&](const int slot) {
    return tables.node_type(slot).interconnect.reduces_in_switch;
  });
}

}  // namespace

Seconds RingCost::alone() const {
  Seconds slowest{};
  for (const auto& [link, time] : busy) slowest = std::max(slowest, time);
  return std::max(fixed, latency + slowest);
}

void PlacedRings::add(std::vector<int> members, const Collective& like, Kind kind) {
  members_.push_back({std::move(members), &like, std::move(kind)});
  rings_.emplace_back().slots.assign(members_.back().units.size(), -1);
}

bool PlacedRings::follow(PlacementTables& tables, const std::vector<int>& slot_of,
                         PlacementScratch& scratch) {
  bool has_moved = false;
  for (std::size_t i = 0; i < rings_.size(); ++i) {
    const std::vector<int>& units = members_[i].units;
    const bool is_same = std::equal(units.begin(), units.end(), rings_[i].slots.begin(),
                                    [&](const int unit, const int slot) {
                                      return slot_of[static_cast<std::size_t>(unit)] == slot;
                                    });
    if (is_same) continue;
    if (!has_moved) rings_before_ = rings_;
    has_moved = true;
    place(rings_[i], members_[i], tables, slot_of, scratch);
  }
  if (!has_moved) return false;
  cost_before_.busy.swap(cost_.busy);
  cost_before_.fixed = cost_.fixed;
  cost_before_.latency = cost_.latency;
  add_up(tables, scratch);
  return true;
}

void PlacedRings::undo() {
  rings_.swap(rings_before_);
  std::swap(cost_, cost_before_);
}

/// A ring whose members all have nodes of their own has the same steps wherever those are.
void PlacedRings::place(Ring& ring, const Members& members, PlacementTables& tables,
                        const std::vector<int>& slot_of, PlacementScratch& scratch) const {
  const std::vector<int> before = ring.slots;
  for (std::size_t i = 0; i < before.size(); ++i)
    ring.slots[i] = slot_of[static_cast<std::size_t>(members.units[i])];
  const bool was_spread = ring.is_spread, was_in_switch = ring.in_switch;
  ring.is_spread = on_own_nodes(tables, ring.slots, scratch.node_members);
  ring.in_switch = reduced_in_switch(tables, ring.slots);
  const bool keeps_steps = was_spread && ring.is_spread && was_in_switch == ring.in_switch;
  if (!keeps_steps) {
    std::vector<NodeId> nodes;
    for (const int slot : ring.slots) nodes.push_back(tables.slot(slot).node);
    const RingLayout layout = ring_layout(nodes);
    CollectiveTask task;
    task.work = members.kind.work;
    task.payload = members.like->payload;
    task.ranks_per_member = static_cast<double>(tables.slot(0).gpus.size());
    task.layout = &layout;
    task.hop = tables.scenario().platform.fabric.collective_latency;
    task.reduced_in_switch = ring.in_switch;
    task.in_node = [&](Bytes payload, RingWork work) {
      return in_node_part(tables, ring.slots, layout, payload, work);
    };
    task.node_rate = [&] {
      return slowest_step(tables.scenario().platform, layout, nodes,
                          [&](std::size_t i) -> const std::vector<int>& {
                            return tables.slot(ring.slots[i]).gpus;
                          });
    };
    CollectiveSteps steps = members.kind.steps(task);
    ring.fixed = steps.fixed;
    ring.latency = steps.latency;
    ring.flows = std::move(steps.flows);
    ring.routes.resize(ring.flows.size());
  }
  for (std::size_t i = 0; i < ring.flows.size(); ++i) {
    const auto [from, to, bytes] = ring.flows[i];
    if (keeps_steps && before[from] == ring.slots[from] && before[to] == ring.slots[to]) continue;
    ring.routes[i] = tables.route(ring.slots[from], ring.slots[to]);
  }
}

/// Each link once, with all the time it is kept busy.
void PlacedRings::add_up(const PlacementTables& tables, PlacementScratch& scratch) {
  std::vector<Seconds>& link_time = scratch.link_time;
  if (link_time.size() < tables.num_links()) link_time.resize(tables.num_links());
  cost_.fixed = cost_.latency = Seconds{0};
  cost_.busy.clear();
  for (const Ring& ring : rings_) {
    cost_.fixed = std::max(cost_.fixed, ring.fixed);
    cost_.latency = std::max(cost_.latency, ring.latency);
    for (std::size_t i = 0; i < ring.flows.size(); ++i) {
      for (const auto& link : tables.links(ring.routes[i])) {
        Seconds& sum = link_time[link.id.index()];
        if (sum == Seconds{0}) cost_.busy.emplace_back(link.id, Seconds{0});
        sum += ring.flows[i].bytes / link.bandwidth;
      }
    }
  }
  for (auto& [link, time] : cost_.busy) time = std::exchange(link_time[link.index()], Seconds{0});
}

void PlacedMessages::add(int from, int to) {
  Flow flow;
  flow.from = from;
  flow.to = to;
  flows_.push_back(flow);
}

bool PlacedMessages::follow(PlacementTables& tables, const std::vector<int>& slot_of,
                            PlacementScratch& scratch) {
  bool has_moved = false;
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const int from = slot_of[static_cast<std::size_t>(flows_[i].from)];
    const int to = slot_of[static_cast<std::size_t>(flows_[i].to)];
    if (from == flows_[i].from_slot && to == flows_[i].to_slot) continue;
    if (!has_moved) {
      flows_before_ = flows_;
      for (Flow& flow : flows_) flow.has_changed = false;
    }
    has_moved = true;
    flows_[i].from_slot = from;
    flows_[i].to_slot = to;
    flows_[i].route = tables.route(from, to);
    flows_[i].has_changed = true;
  }
  if (has_moved) share_links(tables, scratch);
  return has_moved;
}

void PlacedMessages::share_links(const PlacementTables& tables, PlacementScratch& scratch) {
  std::vector<int>& link_flows = scratch.link_flows;
  if (link_flows.size() < tables.num_links()) link_flows.resize(tables.num_links());
  for (const Flow& flow : flows_)
    for (const auto& link : tables.links(flow.route)) ++link_flows[link.id.index()];
  for (Flow& flow : flows_) {
    BytesPerSecond share = flow.route.in_node
                               ? flow.route.bandwidth
                               : BytesPerSecond{std::numeric_limits<double>::infinity()};
    for (const auto& link : tables.links(flow.route))
      share = std::min(share, link.bandwidth / static_cast<double>(link_flows[link.id.index()]));
    if (share == flow.share) continue;
    flow.share = share;
    flow.has_changed = true;
  }
  for (const Flow& flow : flows_)
    for (const auto& link : tables.links(flow.route)) link_flows[link.id.index()] = 0;
}

}  // namespace windtunnel
