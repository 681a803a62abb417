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

}  // namespace windtunnel
