#pragma once

#include <string_view>
#include <vector>

#include "plan/compression.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

/// GPUs as NCCL's tables distinguish them (compCapIndex).
enum class NcclGpu { volta, ampere, hopper, blackwell };
/// Generation of the device, told by the number formats that it multiplies.
NcclGpu nccl_gpu(const Device& device);

/// The rate that NCCL's search assigns to a NIC of this rate: the next lower one of its steps (speedArrayInter, src/graph/search.cc).
BytesPerSecond nccl_step(BytesPerSecond nic);

/// A collective over several nodes as NCCL's tuner sees it.
struct TunerInput {
  Bytes payload{};
  int members = 0, nodes = 0;
  BytesPerSecond nics{};   ///< out of a node, in steps of nccl_step(), whoever else uses them
  BytesPerSecond wires{};  ///< out of a GPU to others of its node
  int channels = 1;        ///< of its search, one a NIC
  NcclGpu gpu = NcclGpu::ampere;
  bool nvlink = true;  ///< inside all nodes, of equal GPUs; else there is no LL128
  bool nvls = false;   ///< switches reduce
  Seconds network{};   ///< what a hop takes more than on InfiniBand (ncclNetProperties, latency)
  RingKind work = RingKind::all_reduce;
  bool pat = false;  ///< PAT is there: NCCL 2.23 and later
};

/// Most GPUs of a node that each reduce a part in the switch (NCCL_MAX_NVLS_ARITY).
inline constexpr int most_nvls_heads = 32;

/// Rate of PAT as a share of a ring's.
inline constexpr double pat_share = 0.75;
/// Latency of PAT among `members`, one per node.
Seconds pat_latency(int members, Seconds hop);

/// One combination of algorithm and protocol that NCCL's tuner may choose for a collective.
struct TunerChoice {
  std::string_view algorithm = "ring";   ///< "ring", "tree", "NVLS tree", "PAT"
  std::string_view protocol = "Simple";  ///< "Simple", "LL", "LL128"
  Seconds latency{};
  BytesPerSecond rate{};  ///< payload over time, without the latency
  Seconds time(Bytes payload) const { return latency + payload / rate; }
};

/// Times that NCCL's tuner estimates for each algorithm and protocol, of which it picks the least: ncclTopoTuneModel() and
/// ncclTopoGetAlgoTime() (src/graph/tuning.cc, NCCL 2.26; Blackwell's limits of a channel are those of 2.28, the first that are not twice
/// Hopper's). Inside nodes links have the rates of the platform, not steps. For LL and LL128, whose tables NVIDIA measured, the estimate
/// is also our prediction. With one member per node each hop is exposed: rings take the latency of a tree's hops, and halves of an
/// all-reduce may use PAT (Jeaugey, arXiv:2506.20252; ncclPatEnable()). Limits: hosts are Intel's; Blackwell's switches are modelled as
/// Hopper's; the steps of NICs are Hopper's with the 10 and 5 GB/s of older GPUs; halves with several members per node have no LL and
/// LL128, and reductions are sums (averages have no PAT); NVLink SHARP with in-network reduction and plugins' own tuners are not here.
std::vector<TunerChoice> tuner_choices(const TunerInput& input);

/// True if the tuner estimates the switch to be faster than a ring of any protocol, inside one node, among n GPUs of `wires`.
bool tuner_picks_switch(Bytes payload, int gpus, BytesPerSecond wires);

}  // namespace windtunnel
