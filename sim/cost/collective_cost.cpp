#include "cost/collective_cost.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "core/contracts.hpp"
#include "platform/network.hpp"

namespace windtunnel {
namespace {

/// GPUs at which half_size is given.
constexpr double fitted_group = 8;

/// Rings that NVLink lanes inside the group allow. A group without one relays messages through its members; without lanes between
/// all of them it goes through a neighbour or the host, as one ring.
int usable_rings(const Interconnect& interconnect, const std::vector<int>& gpus) {
  if (interconnect.kind != Interconnect::Kind::mesh) return 1;
  const int rings = num_rings(interconnect, gpus);
  return rings > 0 ? rings : std::max(num_relayed_rings(interconnect, gpus), 1);
}

Seconds with_floor(const Interconnect& interconnect, Seconds floor, Seconds transfer) {
  return interconnect.floor == Interconnect::Floor::added ? floor + transfer
                                                          : std::max(floor, transfer);
}

/// The part of group_loss that a reduce-scatter or an all-gather has; an all-reduce has both.
double idle_steps(RingKind kind) {
  constexpr double of_scatter = 0.69;
  return kind == RingKind::all_reduce       ? 1
         : kind == RingKind::reduce_scatter ? of_scatter
                                            : 1 - of_scatter;
}

/// Handshakes of one round of NVLS; fitted: see in_switch_all_reduce().
constexpr Seconds handshakes{4.5e-6};

/// Chunks of which a payload has too few are smaller: below so many rounds of `operations` chunks each, so large.
struct ChunkStep {
  double rounds;
  Bytes chunk;
};
Bytes chunk_of_payload(Bytes payload, Bytes largest, double operations,
                       std::initializer_list<ChunkStep> steps) {
  Bytes chunk = largest;
  for (const auto& [rounds, less] : steps)
    if (payload < chunk * (rounds * operations)) chunk = std::min(chunk, less);
  return chunk;
}

}  // namespace

BytesPerSecond saturated_bus_bandwidth(const Interconnect& interconnect,
                                       const std::vector<int>& gpus) {
  const double steps = 2 * (std::max(static_cast<double>(gpus.size()), 2.0) - 1);
  return interconnect.saturated_bandwidth *
         (usable_rings(interconnect, gpus) / (1 + interconnect.group_loss / steps));
}

NodeLinks links_of(const NodeType& node, const std::vector<int>& gpus) {
  const bool several = gpus.size() > 1;
  return {
      node.interconnect.saturated_bandwidth * (several ? usable_rings(node.interconnect, gpus) : 1),
      nccl_step(node.nic_rate) / node.effective_nic_rate(), nccl_gpu(node.device),
      node.interconnect.kind != Interconnect::Kind::pcie};
}

Seconds in_node_ring(const Interconnect& interconnect, const std::vector<int>& gpus, Bytes payload,
                     RingKind kind) {
  const auto n = static_cast<double>(gpus.size());
  if (n <= 1 || payload <= Bytes{0}) return {};
  const double rings = usable_rings(interconnect, gpus);
  const BytesPerSecond wires = interconnect.saturated_bandwidth * rings;
  const double steps = n - 1, halves = kind == RingKind::all_reduce ? 2 : 1,
               sent = steps * halves + interconnect.group_loss * idle_steps(kind);
  const Bytes half =
      interconnect.half_size * std::pow(n / fitted_group, interconnect.half_size_exponent);
  // With a sharpness above 1 the ramp grows as payloads shrink. Those below the payload of the least time take that time.
  if (const double above = interconnect.sharpness - 1; above > 0)
    payload =
        std::max(payload, half * std::pow(above * 2 * steps / sent, 1 / interconnect.sharpness));
  const Bytes chunk = payload / n;
  Seconds transfer = chunk * sent / wires;
  if (chunk / rings < interconnect.switch_size)
    transfer =
        std::max(transfer, chunk * (steps * halves) / (interconnect.small_bandwidth * rings));
  const Seconds ramp =
      chunk * (2 * steps) / wires * std::pow(half / payload, interconnect.sharpness);
  return with_floor(interconnect, interconnect.floor_base + interconnect.floor_per_gpu * n,
                    transfer + ramp);
}

bool reduces_in_switch(const Interconnect& interconnect, std::size_t gpus) {
  constexpr std::size_t most_without = 2;
  return interconnect.reduces_in_switch && gpus > most_without;
}

Bytes nvls_chunks(Bytes payload, int nodes, int heads, int channels) {
  constexpr int few_nodes = 4;
  const double operations = channels * std::min(heads, most_nvls_heads);
  return operations * (nodes == 1
                           ? chunk_of_payload(payload, 1_MiB / 8, operations,
                                              {{64, 1_MiB / 16}, {8, 1_MiB / 32}, {2, 1_MiB / 64}})
                           : chunk_of_payload(payload, 1_MiB / (nodes >= few_nodes ? 16 : 8),
                                              operations, {{4, 1_MiB / 16}, {1, 1_MiB / 32}}));
}

SwitchTime in_switch_all_reduce(const Interconnect& interconnect, std::size_t gpus, Bytes payload,
                                int nodes) {
  constexpr int stages = 3;  // scattered, reduced and broadcast, gathered
  if (payload <= Bytes{0}) return {};
  const int n = static_cast<int>(gpus), heads = std::min(n, most_nvls_heads);
  const Bytes chunks =
      std::min(payload, nvls_chunks(payload, nodes, n, interconnect.switch_channels));
  const Seconds transfer = chunks * (1 + 1.0 / heads) /
                           (interconnect.saturated_bandwidth * interconnect.switch_efficiency);
  const Seconds round = transfer + handshakes;
  return {interconnect.floor_base + round * (stages - 1.0), round * (payload / chunks)};
}

Seconds in_node_all_reduce(const Interconnect& interconnect, const std::vector<int>& gpus,
                           Bytes payload) {
  const Seconds ring = in_node_ring(interconnect, gpus, payload, RingKind::all_reduce);
  if (!reduces_in_switch(interconnect, gpus.size())) return ring;
  const Seconds by_switch = in_switch_all_reduce(interconnect, gpus.size(), payload).sum();
  return tuner_picks_switch(payload, static_cast<int>(gpus.size()),
                            interconnect.saturated_bandwidth)
             ? by_switch
             : std::min(ring, by_switch);
}

Seconds in_node_collective(const Interconnect& interconnect, const std::vector<int>& gpus,
                           Bytes payload, RingKind kind) {
  return kind == RingKind::all_reduce ? in_node_all_reduce(interconnect, gpus, payload)
                                      : in_node_ring(interconnect, gpus, payload, kind);
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

std::vector<NodeCrossing> crossings(const CrossingTask& task) {
  WT_EXPECT(task.nodes > 1);
  const Bytes payload = task.payload;
  const double share = share_of(task.work);
  const Bytes in_ring = ring_all_reduce_volume(payload, task.members) * share;
  const double per_node = static_cast<double>(task.members) / task.nodes;
  const double up_and_down = 2 * std::ceil(std::log2(task.nodes));
  // Payloads that leave a node, half of them on the way up, half on the way down.
  const double sent = task.nodes == 2 ? 1 : task.nodes == 3 ? 1.5 : 2;
  // A hop of Simple takes 14 us on InfiniBand; networks that take longer tell NCCL so.
  constexpr Seconds usual_hop{14e-6};
  const BytesPerSecond line = task.rate * (task.sharing * task.links.step_over_rate);
  std::vector<NodeCrossing> candidates;
  for (const TunerChoice& choice :
       tuner_choices({payload, task.members, task.nodes, line, task.links.wires,
                      std::clamp(task.nics, 1, static_cast<int>(std::ceil(per_node))),
                      task.links.gpu, task.links.nvlink, static_cast<bool>(task.in_switch),
                      std::max(Seconds{0}, task.hop - usual_hop), task.work, task.pat})) {
    NodeCrossing crossing{choice.algorithm, choice.protocol};
    crossing.reckoned = choice.time(payload);
    if (choice.protocol != "Simple") {
      const double flags = choice.protocol == "LL" ? 2 : 128.0 / 120;
      crossing.volume = (choice.algorithm == "ring" ? in_ring : payload * sent) * flags;
      crossing.latency = choice.latency;
      crossing.in_node = payload / choice.rate;
    } else if (choice.algorithm == "ring") {
      crossing.volume = in_ring;
      crossing.latency =
          ring_all_reduce_latency(task.members, task.nodes, task.hop, task.hop_in_node) * share;
      crossing.in_node = task.in_node(payload);
    } else if (choice.algorithm == "PAT") {
      crossing.volume = in_ring / pat_share;
      crossing.latency = pat_latency(task.members, task.hop);
    } else if (choice.algorithm == "tree") {
      const Bytes chunk = std::min(payload, tree_chunk(task.nics));
      crossing.volume = payload * sent;
      crossing.latency = (task.hop + chunk * (sent / 2) / task.rate) * up_and_down;
      if (per_node > 1) {
        // Time of a chunk from one member to the next over the node's wires, measured with a payload of many chunks.
        const Seconds chunk_in_node =
            task.in_node(1_GiB) * (chunk / 1_GiB * per_node / (2 * (per_node - 1)));
        crossing.latency += (task.hop_in_node + chunk_in_node) * (2 * (std::ceil(per_node) - 1));
        crossing.in_node = task.in_node(payload * (per_node / (per_node - 1)));
      }
    } else {
      const Bytes chunks =
          std::min(payload, nvls_chunks(payload, task.nodes, static_cast<int>(std::ceil(per_node)),
                                        task.switch_channels));
      const SwitchTime in_switch = task.in_switch(payload);
      crossing.volume = payload * sent;
      // An inner node of more than two waits for both of its children.
      if (task.nodes > 2) crossing.volume += task.rate * (handshakes * (payload / chunks));
      crossing.latency =
          (task.hop + chunks * (sent / 2) / task.rate) * up_and_down + in_switch.fill;
      crossing.in_node = in_switch.rounds;
    }
    candidates.push_back(crossing);
  }
  return candidates;
}

Seconds time_alone(const CrossingTask& task, const NodeCrossing& crossing) {
  return crossing.latency + std::max(crossing.in_node, crossing.volume / task.rate);
}

NodeCrossing crossing(const CrossingTask& task, std::string_view algorithm) {
  std::vector<NodeCrossing> candidates = crossings(task);
  const auto is_other = [&](const NodeCrossing& each) { return each.algorithm != algorithm; };
  if (!std::all_of(candidates.begin(), candidates.end(), is_other))
    std::erase_if(candidates, is_other);
  return *std::min_element(
      candidates.begin(), candidates.end(),
      [](const NodeCrossing& a, const NodeCrossing& b) { return a.reckoned < b.reckoned; });
}

}  // namespace windtunnel
