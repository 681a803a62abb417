#pragma once

#include <vector>

#include "platform/platform.hpp"

namespace windtunnel {

/// All-reduce of `payload` bytes among GPUs of one node, by floor and saturating bus bandwidth:
///   T = max( T0(n), w/Binf * (1 + (S0(n)/S)^g) ),   w = 2 S (n-1)/n
/// or, where the floor is added,  T = T0(n) + w/Binf * (1 + (S0(n)/S)^g).
/// w: bytes a GPU sends in a ring (Patarasuk & Yuan, J. Parallel Distrib. Comput. 69(2), 117-124,
/// 2009). T0, Binf, S0, g: fits to NCCL tables, 1 MiB to 1 GiB (docs/model.md); nothing below 1
/// MiB is constrained. Binf grows with n on a switch, and with the number of rings on an NVLink
/// mesh: num_rings(). Small messages go by a protocol of less
/// bandwidth: the tables show NCCL change over at 3 MiB a GPU (A100) and 0.28 MiB a GPU and ring
/// (V100), whatever n is.
Seconds in_node_all_reduce(const Interconnect& interconnect, const std::vector<int>& gpus,
                           Bytes payload);

/// All-gather or reduce-scatter: a GPU sends (n-1)/n of the payload, as in an all-reduce of half of it, and pays the same
/// floor. `payload` is the whole gathered or reduced tensor. Checked on nccl-tests-a100 (docs/accuracy.md), not fitted.
Seconds in_node_all_gather(const Interconnect& interconnect, const std::vector<int>& gpus,
                           Bytes payload);

/// Bus bandwidth at infinite size for this group.
BytesPerSecond saturated_bus_bandwidth(const Interconnect& interconnect,
                                       const std::vector<int>& gpus);

/// Bytes one member of a ring all-reduce over `members` sends: 2 (n-1)/n * payload.
Bytes ring_all_reduce_volume(Bytes payload, int members);
/// Hops between nodes that a chunk makes in a ring all-reduce: 2 (n-1) hops in all, of which
/// `nodes` out of n cross; 2 (n-1) when every member has its own node. Each pays the fabric's
/// latency; hops inside a node are in the floor.
double ring_all_reduce_crossings(int members, int nodes);

/// What a node sends to others in an all-reduce, and hops between nodes one after the other.
struct NodeCrossing {
  Bytes volume{};
  double hops = 0;
};
/// A ring through all members or, where switches reduce and nodes have several members, a tree of nodes, each of which is reduced inside
/// at the same time:  2 (N-1)/N * payload,  2 log2(N) hops up and down.
/// NCCL_ALGO_NVLS_TREE, which ncclTopoTuneModel (src/graph/tuning.cc, NCCL 2.18) prefers to the ring on GPUs with NVLink SHARP. A tree
/// of N nodes has N-1 edges, each with the payload either way; two trees, in which leaves are inner nodes, share them evenly (Sanders
/// et al., Parallel Computing 35(12), 2009). Limit: only all-reduces; gathers and scatters stay rings.
NodeCrossing all_reduce_crossing(Bytes payload, int members, int nodes, bool reduced_in_switch);

}  // namespace windtunnel
