#include "cost/nccl_tuner.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace windtunnel {
namespace {

struct Protocol {
  std::string_view name;
  double ring_base, tree_base;        ///< baseLat, in us
  double ring_inside, tree_inside;    ///< hwLat over NVLink
  double ring_between, tree_between;  ///< hwLat over the network
  int flights;  ///< how often a hop takes the network's own latency: Simple flushes
  std::array<double, 23> tree_correction;  ///< treeCorrectionFactor, from 64 B on by powers of two
};
constexpr std::array<Protocol, 3> protocols{{
    {"LL",
     6.6,
     6.8,
     1.0,  // 0.6, but no less than what posting to the network takes
     0.6,
     2.7,
     5.0,
     1,
     {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1}},
    {"LL128", 14.0, 14.0, 1.9, 1.25, 4.0, 8.5, 1, {1,  1,  1,  1,  1,  .9, .8, .8, .8, .7, .6, .6,
                                                   .6, .6, .6, .6, .8, .9, .9, .9, .9, 1,  1}},
    {"Simple", 8.4, 8.4, 3.4, 4.0, 14.0, 14.0, 2, {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                                                   .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}},
}};

/// GB/s of a channel by GPU: over two nodes, and over more.
using Limits = std::array<std::array<double, 2>, 4>;
constexpr Limits most_of_tree{{{18.5, 10}, {23.6, 17.8}, {41.4, 36}, {42.8, 24}}};
constexpr Limits most_of_ring_ll128{{{20, 20}, {20, 20}, {36.7, 36.7}, {34.6, 73.4}}};
constexpr Limits most_of_tree_ll128{{{20, 20}, {20, 20}, {36.7, 29}, {31.67, 20}}};
constexpr std::array<double, 16> steps_of_nics{48,   45, 42, 40, 30, 24, 22, 20,
                                               17.5, 15, 12, 10, 6,  5,  3,  1.2};
constexpr std::array<double, 2> most_of_ll{39, 20.4};  ///< of a whole node

double correction(const Protocol& protocol, Bytes payload) {
  const auto step = static_cast<std::size_t>(std::max(0.0, std::floor(std::log2(payload / 64_B))));
  return step < protocol.tree_correction.size() ? protocol.tree_correction[step] : 1;
}

constexpr double pat_base = 8;       ///< of PAT, in us: in addition to its levels
constexpr double pat_member = 2.8;   ///< for each member
constexpr double pat_overlap = 3.5;  ///< how many of its levels go at once
constexpr BytesPerSecond most_rate{std::numeric_limits<double>::infinity()};
constexpr double switch_latency = 25;     ///< in us
constexpr double switch_share = 5.0 / 6;  ///< what NVLS is reckoned to attain of its channels

Seconds us(double count) { return Seconds{count * 1e-6}; }

/// ncclTopoDupChannels (src/graph/search.cc): few fast channels are twice as many of half the rate.
bool doubles_channels(const TunerInput& input) {
  const BytesPerSecond each = input.nics / input.channels;
  return each >= 25_GBps &&
         (input.gpu <= NcclGpu::ampere || each >= 50_GBps || input.channels <= 4);
}

}  // namespace

Seconds pat_latency(int members, Seconds hop) {
  return us(pat_base + members * pat_member) + hop * (std::floor(std::log2(members)) / pat_overlap);
}

NcclGpu nccl_gpu(const Device& device) {
  const auto multiplies = [&](Precision precision) { return device.peak.contains(precision); };
  return multiplies(Precision::nvfp4)  ? NcclGpu::blackwell
         : multiplies(Precision::fp8)  ? NcclGpu::hopper
         : multiplies(Precision::bf16) ? NcclGpu::ampere
                                       : NcclGpu::volta;
}

BytesPerSecond nccl_step(BytesPerSecond nic) {
  for (const double step : steps_of_nics)
    if (step * 1_GBps <= nic) return step * 1_GBps * std::floor(nic / (step * 1_GBps));
  return nic;
}

std::vector<TunerChoice> tuner_choices(const TunerInput& input) {
  const bool whole = input.work == RingKind::all_reduce, one_each = input.members == input.nodes;
  const double n = input.members, nodes = input.nodes, halves = whole ? 2 : 1;
  const double steps = halves * (n - 1), crossings = halves * (nodes - 1);
  const double here = std::floor(n / nodes);
  const double levels = std::floor(std::log2(nodes));
  const bool two = input.nodes == 2;
  const int channels = input.channels * (doubles_channels(input) ? 2 : 1);
  const auto at_most = [&](const Limits& limits) {
    return limits[static_cast<std::size_t>(input.gpu)][two ? 0 : 1] * 1_GBps * channels;
  };
  const BytesPerSecond inside =
      one_each ? most_rate : input.wires * (here > 1 ? here / (here - 1) : 1.0);
  // Over two nodes a tree may take more inside than its NICs carry, up to the largest of the steps.
  const BytesPerSecond most_inside = steps_of_nics.front() * 1_GBps * input.channels;
  const BytesPerSecond ring = std::min(input.nics, inside);
  const BytesPerSecond in_tree =
      std::min(two ? std::min(input.nics * 2.0, most_inside) : input.nics, inside);
  const BytesPerSecond tree = std::min(in_tree * 0.92, at_most(most_of_tree));
  // A GPU alone on its node is parent, child and leaf at once (NCCL_TOPO_PATTERN_TREE).
  const double of_tree = one_each ? 0.85 : 1;
  const BytesPerSecond ll = most_of_ll[two ? 0 : 1] * 1_GBps;
  std::vector<TunerChoice> choices;
  for (const Protocol& protocol : protocols) {
    const bool simple = protocol.name == "Simple";
    if ((protocol.name == "LL128" && !input.nvlink) || (!whole && !simple && !one_each)) continue;
    const Seconds network = input.network * static_cast<double>(protocol.flights);
    const double between = one_each ? protocol.tree_between : protocol.ring_between;
    Seconds ring_latency = us(protocol.ring_base + (steps - crossings) * protocol.ring_inside) +
                           (us(between) + network) * crossings;
    constexpr Bytes plateau = 64_B;
    if (simple && whole && input.payload / (2 * channels * n) >= plateau)
      ring_latency *= input.gpu == NcclGpu::volta ? 1.9 : 1.4;
    choices.push_back(
        {"ring", protocol.name, ring_latency,
         (simple                     ? ring
          : protocol.name == "LL128" ? std::min(ring * 0.92, at_most(most_of_ring_ll128))
                                     : std::min(ring * 0.5, ll)) *
             (n / steps)});
    if (!whole) {
      if (one_each && simple && input.pat)
        choices.push_back({"PAT", protocol.name,
                           pat_latency(input.members, us(protocol.tree_between) + network),
                           in_tree * pat_share});
      continue;
    }
    choices.push_back(
        {"tree", protocol.name,
         us(protocol.tree_base + 2 * (here - 1) * protocol.tree_inside) +
             (us(protocol.tree_between) + network) * (2 * levels),
         (simple                     ? tree
          : protocol.name == "LL128" ? std::min(tree * (120.0 / 128), at_most(most_of_tree_ll128))
                                     : std::min(tree / 3.8, ll)) *
             (0.5 * of_tree * correction(protocol, input.payload))});
  }
  if (input.nvls && whole) {
    const double heads = std::min(here, 1.0 * most_nvls_heads);
    choices.push_back(
        {"NVLS tree", "Simple", us(switch_latency) + (us(14) + input.network * 2.0) * (2 * levels),
         std::min(input.wires * (heads / (heads + 1)), input.nics * (two ? 1.0 : 0.5)) *
             switch_share});
  }
  return choices;
}

bool tuner_picks_switch(Bytes payload, int gpus, BytesPerSecond wires) {
  // Rates of a channel per reducing GPU, whose links carry another channel too: Hopper's speedArrayIntra (src/graph/search.cc)
  constexpr std::array<double, 11> steps_inside{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
  const double heads = std::min(gpus, most_nvls_heads);
  const auto* const step = std::find_if(steps_inside.begin(), steps_inside.end(), [&](double each) {
    return each * 1_GBps * (heads + 1) <= wires;
  });
  if (step == steps_inside.end()) return false;
  const double steps = 2.0 * (gpus - 1);
  const BytesPerSecond ring = wires * (gpus / steps);
  const Seconds by_switch =
      us(switch_latency) + payload / (*step * 1_GBps * (heads * switch_share));
  const auto by_ring = [&](double base, double hop, double share) {
    return us(base + steps * hop) + payload / (ring * share);
  };
  return by_switch <
         std::min({by_ring(6.6, 0.6, 0.5), by_ring(14, 1.9, 0.92), by_ring(8.4, 3.4, 1)});
}

}  // namespace windtunnel
