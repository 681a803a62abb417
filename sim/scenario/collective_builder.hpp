#pragma once

#include <vector>

#include "plan/plan.hpp"
#include "platform/network.hpp"
#include "scenario/program_builder.hpp"
#include "scenario/ring_edges.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// What a ring does: all of an all-reduce, or the half of it that is a reduce-scatter or an all-gather.
enum class RingWork { all_reduce, scatter_or_gather };
/// The part of an all-reduce's volume and steps that the work has.
double share_of(RingWork work);
/// The work on `payload` bytes among GPUs of one node.
Seconds in_node_ring(const Interconnect& wires, const std::vector<int>& gpus, Bytes payload,
                     RingWork work);

/// Makes the collectives of a plan's groups: what runs inside nodes is a number, what crosses nodes is flows over the network's links.
class CollectiveBuilder {
 public:
  CollectiveBuilder(const BuildInputs& inputs, Network& network)
      : in_(&inputs), network_(&network) {}

  /// One ring through one rank of each member, once for every rank of a device. Inside and between nodes at the same time:
  ///   in a node   in_node_all_reduce or in_node_all_gather of the payload among its members
  ///   an edge     2 (N-1)/N * payload (all-reduce; half of it otherwise), over the nodes' NICs: NCCL's channels leave a node
  ///               through all of them
  ///   latency     ring_all_reduce_crossings(N, n) hops (half of them otherwise)
  Collective flat(const std::vector<DeviceId>& members, Bytes payload, RingWork work) const;

  /// Scattered inside each node, all-reduced between the n nodes shard by shard, gathered inside: one after the other (the 2D-torus
  /// all-reduce of Mikami et al., arXiv 1811.05233, section 2.2, with nodes as rows):
  ///   T = 2 gather(payload, in node) + 2 (n-1) latency + 2 (n-1)/n * payload over a node's NICs
  /// A reduce-scatter or all-gather is half of it. The number of bytes sent is that of the flat ring: 2 (N-1) payload.
  Collective hierarchical(const std::vector<DeviceId>& members, Bytes payload, RingWork work) const;

  /// The ring that the plan asks for its gradients.
  Collective gradient_ring(const std::vector<DeviceId>& members, Bytes payload,
                           RingWork work) const;

  /// A layer's parameters gathered, or its gradients scattered, on their way through a pass: flat() in one latency of a message and
  /// one of a collective, as ring_time() in cost/stage_cost.cpp has them, twice for an all-reduce, since steps of consecutive layers overlap.
  Collective sharded_ring(const std::vector<DeviceId>& members, Bytes payload, RingWork work) const;

  /// `count` all-reduces of `payload` bytes in a tensor group across nodes, as one: every node edge carries all channels' bytes.
  Collective tensor_ring(const std::vector<DeviceId>& members, Bytes payload, double count) const;

 private:
  const PlanDevice& device(DeviceId id) const { return in_->plan->devices[id.index()]; }
  Network::Endpoint endpoint(DeviceId id) const { return {device(id).node, device(id).gpus}; }
  RingLayout layout_of(const std::vector<DeviceId>& members) const;
  /// The longest of the parts inside nodes.
  Seconds in_node_part(const std::vector<DeviceId>& members, const RingLayout& layout,
                       Bytes payload, RingWork work) const;
  void add_edges(Collective& collective, const RingLayout& layout, Bytes volume) const;

  const BuildInputs* in_;
  Network* network_;
};

}  // namespace windtunnel
