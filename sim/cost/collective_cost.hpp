#pragma once

#include <functional>
#include <vector>

#include "platform/platform.hpp"

namespace windtunnel {

/// All-reduce of `payload` bytes among GPUs of one node, by floor and saturating bus bandwidth:
///   T = max( T0(n), w/Binf * (1 + (S0(n)/S)^g) ),   w = 2 S (n-1)/n
/// or, where the floor is added,  T = T0(n) + w/Binf * (1 + (S0(n)/S)^g).
/// w: bytes a GPU sends in a ring (Patarasuk & Yuan, J. Parallel Distrib. Comput. 69(2), 117-124,
/// 2009). T0, Binf, S0, g: fits to NCCL tables, 1 MiB to 1 GiB (docs/model.md); nothing below 1
/// MiB is constrained. Binf grows with n on a switch, up to the 8 GPUs of the tables: ncclTopoTuneModel
/// (src/graph/tuning.cc, NCCL 2.30) gives rings and NVLS a bus bandwidth that n does not change. It grows with the number of rings on an NVLink
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
/// `nodes` out of n cross; 2 (n-1) when every member has its own node.
double ring_all_reduce_crossings(int members, int nodes);
/// Latency of those 2 (n-1) hops, one after the other, as ncclTopoTuneModel counts it (src/graph/tuning.cc, NCCL 2.8 to 2.30; in
/// microseconds 3.4 inside a node and 14 between nodes, with large messages). Inside one node it is in the floor.
Seconds ring_all_reduce_latency(int members, int nodes, Seconds hop, Seconds hop_in_node);
/// Of one hop among the GPUs of a node: its floor grows by two of them with each GPU.
Seconds hop_in_node(const Interconnect& interconnect);

/// An all-reduce over several nodes.
struct CrossingTask {
  Bytes payload{};
  int members = 0, nodes = 0;
  bool reduced_in_switch = false;  ///< Interconnect::reduces_in_switch, of all nodes
  BytesPerSecond rate{};           ///< out of a node, for this all-reduce alone
  Seconds hop{}, hop_in_node{};    ///< latency of a step between nodes, and of one inside
  std::function<Seconds(Bytes payload)> in_node;  ///< an all-reduce among the members of a node
};

/// What it takes.
struct NodeCrossing {
  const char* algorithm = "ring";  ///< "ring", "tree", "NVLS tree"
  Bytes
      volume{};  ///< sent to others by the node that sends most, slower paths counted as more bytes
  Seconds latency{};  ///< of its steps, one after the other
  Seconds in_node{};  ///< among the members of each node, at the same time
};

/// NCCL's algorithms for an all-reduce of S over N nodes with n members, and what ncclTopoTuneModel (src/graph/tuning.cc, NCCL 2.30;
/// the same since 2.8, NVLS trees since 2.18) expects of them:
///   ring       2 (n-1)/n S leave a node, ring_all_reduce_latency(); in a node a ring
///   tree       two binary trees of nodes, a chain through the members of each: S leave a node of two, 2 S a node of more, at 0.92 of
///              what a ring attains, 2 log2 N hops; in a node 2 S at 0.92 of the ring's bus bandwidth
///   NVLS tree  where switches reduce in the node: S, 1.5 S or 2 S leave a node of 2, 3 or more; in a node what it takes alone
/// Each node is an inner node of one tree and a leaf of the other (ncclGetDtree, src/graph/trees.cc): as the former it sends S/2 to its
/// parent and S/2 to each child, as the latter S/2. Two nodes are each the other's child. On three the tuner still counts 2 S of a tree
/// without NVLS, and so do we, because that decides.
std::vector<NodeCrossing> all_reduce_crossings(const CrossingTask& task);

/// The fastest of them, alone on its links, which the tuner picks; of equals the one that sends less. One member per node: always the ring; with more, trees.
/// Limits: NCCL_ALGO is not set; protocols for small messages are in `in_node` alone; gathers and scatters stay rings.
NodeCrossing all_reduce_crossing(const CrossingTask& task);

/// How long `crossing` takes alone on its links.
Seconds time_alone(const CrossingTask& task, const NodeCrossing& crossing);

}  // namespace windtunnel
