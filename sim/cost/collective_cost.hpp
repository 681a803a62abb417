#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "cost/nccl_tuner.hpp"
#include "plan/compression.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

/// A collective among n GPUs of one node, as a ring of NVLinks by which a GPU sends S (n-1)/n, twice of it in an all-reduce; `payload` S is
/// the whole reduced or gathered tensor:
///   T = max( T0(n), S/n * (k (n-1) + l) / B + 2 S (n-1)/n / B * (S0(n)/S)^g ),   k = 2 in an all-reduce, 1 in its halves
/// or, where the floor is added,  T0(n) + ...
/// B: bandwidth of NVLink in one direction. l: a block of NCCL's kernels goes through the steps
/// of a ring one after the other, and the last of a scatter (recvReduceCopy) and of a gather (recv) send nothing
/// (src/device/reduce_scatter.h and all_gather.h, NCCL 2.8 to 2.30); they last as long as l steps that send, of which a reduce-scatter has
/// 0.69, an all-gather 0.31 and an all-reduce all (fitted on 2 and 8 H100, 60 rows). S0, g: what is lost to launches and small chunks, in a
/// gather as much as in an all-reduce of the same payload (nccl-tests-a100). Fits to NCCL tables, 1 MiB to 1 GiB (docs/model.md); nothing
/// below 1 MiB is constrained. A mesh has num_rings() of them. Small messages go by a protocol of less bandwidth: the tables show NCCL
/// change over at 0.28 MiB a GPU and ring on V100, whatever n is.
Seconds in_node_ring(const Interconnect& interconnect, const std::vector<int>& gpus, Bytes payload,
                     RingKind kind);

/// True if NCCL lets the switch reduce (NVLS): among more than 2 GPUs (ncclNvlsInit, src/transport/nvls.cc, NCCL 2.26).
bool reduces_in_switch(const Interconnect& interconnect, std::size_t gpus);

/// An all-reduce by the switch: until its first chunks are through, and rounds of chunks.
struct SwitchTime {
  Seconds fill{}, rounds{};
  Seconds sum() const { return fill + rounds; }
};

/// All-reduce of S bytes by the switch (NVLS): in rounds of C = nvls_chunks() bytes, each scattered over h GPUs, reduced by the switch and
/// broadcast, and gathered, while the next follow:
///   T = base of the floor + (S/C + 2) * (C (1 + 1/h) / (e B) + 4.5 us)
/// The switch takes C from a GPU to reduce it and C/h to broadcast it. e: switch_efficiency. 4.5 us: handshakes of the three in a round, fitted on
/// every other row of 8 H100 in collectives-h100 (24 rows; the others 9 % off, what the two sources differ by). `nodes` over which it is a tree.
SwitchTime in_switch_all_reduce(const Interconnect& interconnect, std::size_t gpus, Bytes payload,
                                int nodes = 1);

/// C: each channel deals a chunk to each of `heads` GPUs of a node, 32 at most (NCCL_MAX_NVLS_ARITY). A chunk is 128 KiB (NCCL_NVLS_CHUNKSIZE), of a
/// tree over four nodes and more 64, and less where a payload has too few of them: calcCollChunking (src/enqueue.cc, NCCL 2.26; the tree's in
/// computeCollChunkInfo, 2.20).
Bytes nvls_chunks(Bytes payload, int nodes, int heads, int channels);

/// An all-reduce as NCCL makes it: by the switch where its tuner picks that, or else by the shorter of switch and ring.
Seconds in_node_all_reduce(const Interconnect& interconnect, const std::vector<int>& gpus,
                           Bytes payload);

/// An all-reduce as NCCL makes it, or one of its halves, which are rings.
Seconds in_node_collective(const Interconnect& interconnect, const std::vector<int>& gpus,
                           Bytes payload, RingKind kind);

/// The links of a node as NCCL's tuner sees them.
struct NodeLinks {
  BytesPerSecond wires{};     ///< out of a GPU to the others of its group
  double step_over_rate = 1;  ///< nccl_step() over what a NIC attains
  NcclGpu gpu = NcclGpu::ampere;
  bool nvlink = true;  ///< TunerInput::nvlink
};
NodeLinks links_of(const NodeType& node, const std::vector<int>& gpus);

/// Bus bandwidth of an all-reduce in rings at infinite size for this group.
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
/// Latency of one hop between GPUs of a node: the floor grows by two of them with each GPU.
Seconds hop_in_node(const Interconnect& interconnect);

/// A collective over several nodes.
struct CrossingTask {
  Bytes payload{};  ///< the whole reduced or gathered tensor
  int members = 0, nodes = 0;
  BytesPerSecond rate{};         ///< out of a node, for this collective alone
  int nics = 1;                  ///< by which its members leave a node
  Seconds hop{}, hop_in_node{};  ///< latency of a step between nodes, and of one inside
  std::function<Seconds(Bytes payload)> in_node;  ///< a ring of `work` among the members of a node
  std::function<SwitchTime(Bytes payload)>
      in_switch;  ///< an all-reduce by the switch; nothing: not all nodes have one that reduces
  int switch_channels = 1;  ///< Interconnect::switch_channels
  NodeLinks links = {};     ///< as the tuner sees them
  RingKind work = RingKind::all_reduce;
  bool pat = false;    ///< NCCL has PAT
  double sharing = 1;  ///< collectives on the same NICs, of which NCCL does not know
};

/// Terms of its time:  latency + max(in_node, volume / rate),  since the data that NICs send has been reduced in the node before: a
/// pipeline of chunks, which lasts as long as its slowest part, and before that until its first chunk has come through.
struct NodeCrossing {
  std::string_view algorithm = "ring";   ///< TunerChoice::algorithm
  std::string_view protocol = "Simple";  ///< TunerChoice::protocol
  Bytes
      volume{};  ///< sent to others by the node that sends most, slower paths counted as more bytes
  Seconds latency{};   ///< of its steps, one after the other, each with a chunk
  Seconds in_node{};   ///< among the members of each node, while NICs send
  Seconds reckoned{};  ///< by NCCL's tuner, which picks the least
};

/// Bytes that a node hands on at once in a tree: a chunk of 512 KiB (eight of them are a buffer of NCCL_BUFFSIZE) in each channel, of which
/// there are two a NIC (ncclTopoPostset, src/graph/connect.cc) and 32 at most (MAXCHANNELS). NCCL 2.8 to 2.26.
Bytes tree_chunk(int nics);

/// NCCL's algorithms over N nodes with n members, r a node, for an all-reduce of S:
///   ring       2 (n-1)/n S leave a node, ring_all_reduce_latency(); in a node a ring
///   tree       two binary trees of nodes, a chain through the members of each: S, 1.5 S or 2 S leave a node of 2, 3 or more; 2 log2 N hops
///              between nodes and 2 (r-1) inside, each with a tree_chunk() at the rate there; in a node 2 S at the ring's bus bandwidth. In
///              one hop a node sends half a chunk (2 nodes), 3/4 of one (3) or a whole one
///   NVLS tree  where switches reduce in the node: as much leaves it; 2 log2 N hops with the same part of its nvls_chunks(), and those that fill the node;
///              each round of chunks takes NICs as many handshakes as the switch
///   LL, LL128  rings and trees of small payloads: twice and 16/15 of the bytes, a flag with each word or each 120 bytes; as long as the
///              tuner reckons (tuner_choices())
/// A reduce-scatter or an all-gather is half of a ring, or with one member a node
///   PAT        as much as in half a ring at 0.75 of its rate; 8 us, log2 N / 3.5 hops and 2.8 us a member, as the tuner reckons
/// Each node is an inner node of one tree and a leaf of the other (ncclGetDtree, src/graph/trees.cc): as the former it sends S/2 to its
/// parent and S/2 to each child, as the latter S/2. Two nodes are each the other's child, three a chain.
std::vector<NodeCrossing> crossings(const CrossingTask& task);

/// The one that NCCL's tuner picks. `algorithm`: of this one alone, as with NCCL_ALGO, where the nodes have it.
NodeCrossing crossing(const CrossingTask& task, std::string_view algorithm = {});

/// Time of `crossing` alone on its links.
Seconds time_alone(const CrossingTask& task, const NodeCrossing& crossing);

}  // namespace windtunnel
