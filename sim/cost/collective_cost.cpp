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

Bytes tree_chunk(int nics) {
  constexpr int channels_per_nic = 2, most_channels = 32;
  return 1_MiB / 2 * std::min(channels_per_nic * nics, most_channels);
}

Bytes nvls_tree_chunk(Bytes payload, int nodes, int heads) {
  constexpr int channels = 16, most_heads = 32, few_nodes = 4;
  const double at_once = channels * std::min(heads, most_heads);
  // Below so many rounds of a chunk it is halved, one step after the other.
  constexpr std::pair<double, Bytes> steps[]{{4, 1_MiB / 16}, {1, 1_MiB / 32}};
  Bytes chunk = 1_MiB / (nodes >= few_nodes ? 16 : 8);
  for (const auto& [rounds, less] : steps)
    if (payload < chunk * (rounds * at_once)) chunk = std::min(chunk, less);
  return chunk * at_once;
}

std::vector<NodeCrossing> all_reduce_crossings(const CrossingTask& task) {
  WT_EXPECT(task.nodes > 1);
  const Bytes payload = task.payload;
  const Seconds inside = task.in_node(payload);
  const Bytes in_ring = ring_all_reduce_volume(payload, task.members);
  const auto ring_latency = [&](double hop, double hop_in_node) {
    return ring_all_reduce_latency(task.members, task.nodes, task.hop * hop,
                                   task.hop_in_node * hop_in_node);
  };
  std::vector<NodeCrossing> crossings{{"ring", "Simple", in_ring, ring_latency(1, 1), inside}};
  if (task.nodes == task.members) return crossings;
  // busBw * .92, and the latencies of LL over those of Simple, in ncclTopoTuneModel
  constexpr double tree_efficiency = 0.92, ll_bytes = 2;
  constexpr double ll_ring = 2.7 / 14, ll_ring_in_node = 0.6 / 3.4;
  constexpr double ll_tree = 5.0 / 14, ll_tree_in_node = 0.6 / 4;
  const BytesPerSecond ll_bus = task.nodes == 2 ? 39_GBps : 20.4_GBps;
  const double per_node = static_cast<double>(task.members) / task.nodes;
  const double up_and_down = 2 * std::ceil(std::log2(task.nodes));
  const double chain = 2 * (std::ceil(per_node) - 1);
  const Bytes in_tree = payload * ((task.nodes == 2 ? 1 : 2) / tree_efficiency);
  const Seconds tree_in_node =
      task.in_node(payload * (per_node / (per_node - 1) / tree_efficiency));
  const Bytes chunk = tree_chunk(task.nics);
  // What the node's wires carry from one member to the next, by a payload of many chunks.
  const Seconds chunk_in_node =
      task.in_node(1_GiB) * (chunk / 1_GiB * per_node / (2 * (per_node - 1)));
  crossings.push_back(
      {"tree", "Simple", in_tree,
       (task.hop + chunk / task.rate) * up_and_down + (task.hop_in_node + chunk_in_node) * chain,
       tree_in_node});
  crossings.push_back({"ring", "LL", in_ring * ll_bytes, ring_latency(ll_ring, ll_ring_in_node),
                       std::max(inside, in_ring / ll_bus)});
  crossings.push_back(
      {"tree", "LL", in_tree * ll_bytes,
       task.hop * (up_and_down * ll_tree) + task.hop_in_node * (chain * ll_tree_in_node),
       std::max(tree_in_node, payload * 2.0 / ll_bus)});
  if (!task.reduced_in_switch) return crossings;
  const double sent = task.nodes == 2 ? 1 : task.nodes == 3 ? 1.5 : 2;
  const Bytes in_switch =
      nvls_tree_chunk(payload, task.nodes, static_cast<int>(std::ceil(per_node)));
  crossings.push_back({"NVLS tree", "Simple", payload * sent,
                       (task.hop + in_switch / task.rate) * up_and_down, inside});
  return crossings;
}

Seconds time_alone(const CrossingTask& task, const NodeCrossing& crossing) {
  return crossing.latency + std::max(crossing.in_node, crossing.volume / task.rate);
}

NodeCrossing all_reduce_crossing(const CrossingTask& task, std::string_view algorithm) {
  std::vector<NodeCrossing> crossings = all_reduce_crossings(task);
  const auto is_other = [&](const NodeCrossing& each) { return each.algorithm != algorithm; };
  if (!std::all_of(crossings.begin(), crossings.end(), is_other))
    std::erase_if(crossings, is_other);
  return *std::min_element(
      crossings.begin(), crossings.end(), [&](const NodeCrossing& a, const NodeCrossing& b) {
        return std::pair(time_alone(task, a), a.volume) < std::pair(time_alone(task, b), b.volume);
      });
}

}  // namespace windtunnel
