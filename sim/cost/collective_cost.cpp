#include "cost/collective_cost.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/contracts.hpp"
#include "platform/mesh_rings.hpp"

namespace windtunnel {
namespace {

/// GPUs at which half_size is given, and the most that the tables behind group_loss have.
constexpr double fitted_group = 8;

/// Rings that NVLink lanes inside the group allow. A group without one relays messages through its members; without lanes between
/// all of them it goes through a neighbour or the host, as one ring.
int usable_rings(const Interconnect& interconnect, const std::vector<int>& gpus) {
  const int rings = num_rings(interconnect, gpus);
  return rings > 0 ? rings : std::max(num_relayed_rings(interconnect, gpus), 1);
}

/// Of the protocol that NCCL takes for a payload of this size.
BytesPerSecond bus_bandwidth(const Interconnect& interconnect, const std::vector<int>& gpus,
                             Bytes payload) {
  const BytesPerSecond saturated = saturated_bus_bandwidth(interconnect, gpus);
  const double rings =
      interconnect.kind == Interconnect::Kind::mesh ? usable_rings(interconnect, gpus) : 1;
  const Bytes share = payload / (static_cast<double>(gpus.size()) * rings);
  if (share >= interconnect.switch_size) return saturated;
  return std::min(saturated, interconnect.small_bandwidth * rings);
}

}  // namespace

BytesPerSecond saturated_bus_bandwidth(const Interconnect& interconnect,
                                       const std::vector<int>& gpus) {
  if (interconnect.kind == Interconnect::Kind::mesh)
    return interconnect.saturated_bandwidth * static_cast<double>(usable_rings(interconnect, gpus));
  const double n = std::min(static_cast<double>(gpus.size()), fitted_group);
  return interconnect.saturated_bandwidth / (1 + interconnect.group_loss / n);
}

Seconds in_node_all_reduce(const Interconnect& interconnect, const std::vector<int>& gpus,
                           Bytes payload) {
  const int n = static_cast<int>(gpus.size());
  if (n <= 1 || payload <= Bytes{0}) return {};
  const Seconds floor = interconnect.floor_base + interconnect.floor_per_gpu * n;
  const Bytes half =
      interconnect.half_size * std::pow(n / fitted_group, interconnect.half_size_exponent);
  const Seconds transfer = ring_all_reduce_volume(payload, n) /
                           bus_bandwidth(interconnect, gpus, payload) *
                           (1 + std::pow(half / payload, interconnect.sharpness));
  return interconnect.floor == Interconnect::Floor::added ? floor + transfer
                                                          : std::max(floor, transfer);
}

Seconds in_node_all_gather(const Interconnect& interconnect, const std::vector<int>& gpus,
                           Bytes payload) {
  return in_node_all_reduce(interconnect, gpus, payload / 2);
}

Bytes ring_all_reduce_volume(Bytes payload, int members) {
  WT_EXPECT(members > 0);
  return payload * (2.0 * (members - 1) / members);
}

double ring_all_reduce_crossings(int members, int nodes) {
  WT_EXPECT(0 < nodes && nodes <= members);
  return nodes == 1 ? 0.0 : 2.0 * (members - 1) * nodes / members;
}

Seconds ring_all_reduce_latency(int members, int nodes, Seconds hop, Seconds hop_in_node) {
  if (nodes == 1) return {};
  const double crossings = ring_all_reduce_crossings(members, nodes);
  return hop * crossings + hop_in_node * (2.0 * (members - 1) - crossings);
}

Seconds hop_in_node(const Interconnect& interconnect) { return interconnect.floor_per_gpu / 2; }

std::vector<NodeCrossing> all_reduce_crossings(const CrossingTask& task) {
  WT_EXPECT(task.nodes > 1);
  const Bytes payload = task.payload;
  std::vector<NodeCrossing> crossings{
      {"ring", ring_all_reduce_volume(payload, task.members),
       ring_all_reduce_latency(task.members, task.nodes, task.hop, task.hop_in_node),
       task.in_node(payload)}};
  if (task.nodes == task.members) return crossings;
  const Seconds up_and_down = task.hop * (2 * std::ceil(std::log2(task.nodes)));
  if (task.reduced_in_switch) {
    const double sent = task.nodes == 2 ? 1 : task.nodes == 3 ? 1.5 : 2;
    crossings.push_back({"NVLS tree", payload * sent, up_and_down, task.in_node(payload)});
    return crossings;
  }
  constexpr double tree_efficiency = 0.92;  // busBw * .92 in ncclTopoTuneModel
  const double sent = task.nodes == 2 ? 1 : 2;
  const double per_node = static_cast<double>(task.members) / task.nodes;
  crossings.push_back({"tree", payload * (sent / tree_efficiency), up_and_down,
                       task.in_node(payload * (per_node / (per_node - 1) / tree_efficiency))});
  return crossings;
}

Seconds time_alone(const CrossingTask& task, const NodeCrossing& crossing) {
  return std::max(crossing.in_node, crossing.latency + crossing.volume / task.rate);
}

NodeCrossing all_reduce_crossing(const CrossingTask& task) {
  const std::vector<NodeCrossing> crossings = all_reduce_crossings(task);
  return *std::min_element(
      crossings.begin(), crossings.end(), [&](const NodeCrossing& a, const NodeCrossing& b) {
        return std::pair(time_alone(task, a), a.volume) < std::pair(time_alone(task, b), b.volume);
      });
}

}  // namespace windtunnel
