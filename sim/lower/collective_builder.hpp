#pragma once

#include <functional>
#include <vector>

#include "cost/collective_algorithm.hpp"
#include "cost/expert_exchange.hpp"
#include "lower/device_routes.hpp"
#include "lower/program_builder.hpp"
#include "operations/operation.hpp"
#include "plan/plan.hpp"
#include "platform/network.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// Makes the collectives of a plan's groups: what runs inside nodes is a number, what crosses nodes is flows over the network's links.
class CollectiveBuilder {
 public:
  /// Both must outlive it.
  CollectiveBuilder(const BuildInputs& inputs, const DeviceRoutes& routes)
      : in_(&inputs), routes_(&routes) {}

  /// flat_ring() through the members.
  Collective flat(const std::vector<DeviceId>& members, Bytes payload, RingWork work,
                  double copies = 1) const;

  /// As the plan reduces gradients. `copies`: ranks of one member that hold the same (expert_copies_in_tensor_group).
  Collective gradients(const std::vector<DeviceId>& members, Bytes payload, RingWork work,
                       double copies = 1) const;

  /// A layer's parameters gathered, or its gradients scattered, on their way through a pass: flat() in one latency of a message and
  /// one of a collective, as ring_time() in cost/stage_cost.cpp has them, twice for an all-reduce, since steps of consecutive layers overlap.
  Collective sharded_ring(const std::vector<DeviceId>& members, Bytes payload, RingWork work,
                          double copies = 1) const;

  /// Tokens of experts exchanged: `bytes` by one rank in its node, and to all other nodes together. On its way to a node, what a GPU
  /// sends goes to the GPU of the same number among the members there.
  Collective exchange(const std::vector<DeviceId>& members, const Operation& operation,
                      const ExchangeBytes& bytes, const ExpertGroup& group) const;

  /// All-reduces of `payload` bytes in a tensor group across nodes, a half of one or several as one: every node edge carries all channels' bytes.
  Collective tensor_ring(const std::vector<DeviceId>& members, Bytes payload, double count) const;

 private:
  const PlanDevice& device(DeviceId id) const { return in_->plan->devices[id.index()]; }
  std::vector<NodeId> nodes_of(const std::vector<DeviceId>& members) const;
  RingLayout layout_of(const std::vector<DeviceId>& members) const;
  /// The longest of the parts inside nodes.
  Seconds in_node_part(const std::vector<DeviceId>& members, const RingLayout& layout,
                       Bytes payload, RingWork work, double copies) const;
  using Steps = std::function<CollectiveSteps(const CollectiveTask&)>;
  Collective made_of(const Steps& steps, const std::vector<DeviceId>& members, Bytes payload,
                     RingWork work, double copies) const;

  const BuildInputs* in_;
  const DeviceRoutes* routes_;
};

}  // namespace windtunnel
