#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "cost/collective_algorithm.hpp"
#include "cost/expert_exchange.hpp"
#include "lower/codec_plan.hpp"
#include "lower/plan_groups.hpp"
#include "lower/program_builder.hpp"
#include "lower/stage_cost_table.hpp"
#include "lower/token_draws.hpp"
#include "operations/operation.hpp"
#include "plan/plan.hpp"
#include "platform/network.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// Routes between the devices of a plan. Devices are attached to the network once, not once per route.
class DeviceRoutes {
 public:
  /// The network must outlive it.
  DeviceRoutes(const Plan& plan, Network& network) : network_(&network) {
    attached_.reserve(plan.devices.size());
    for (const PlanDevice& device : plan.devices)
      attached_.push_back(network.attach(device.node, device.gpus));
  }

  /// Between devices of different nodes.
  Route between(DeviceId from, DeviceId to) const {
    return network_->route(attached_[from.index()], attached_[to.index()]);
  }

 private:
  Network* network_;
  std::vector<Network::Attachment> attached_;  ///< by device
};

/// Makes the collectives of a plan's groups: what runs inside nodes is a number, what crosses nodes is flows over the network's links.
class CollectiveBuilder {
 public:
  /// Both must outlive it.
  CollectiveBuilder(const BuildInputs& inputs, const DeviceRoutes& routes)
      : in_(&inputs), routes_(&routes) {}

  /// flat_collective() through the members.
  Collective flat(const std::vector<DeviceId>& members, Bytes payload, RingKind work,
                  double copies = 1) const;

  /// As the plan reduces gradients. `copies`: ranks of one member that hold the same (expert_copies_in_tensor_group).
  Collective gradients(const std::vector<DeviceId>& members, Bytes payload, RingKind work,
                       double copies = 1) const;

  /// A layer's parameters gathered, or its gradients scattered, on their way through a pass in `calls` collectives: flat(), and the
  /// latency of a message (of two for an all-reduce), as ring_time() in cost/stage_cost.cpp.
  Collective sharded_ring(const std::vector<DeviceId>& members, Bytes payload, RingKind work,
                          double copies = 1, int calls = 1) const;

  /// `payload` bytes that so many owners among the members broadcast one after the other, each its share, in a ring:
  ///   T = payload / bandwidth + owners * ( hops between nodes * collective_latency + hops in nodes * floor_per_gpu / 2 )
  /// A ring of n members has n - 1 hops, as half an all-reduce has, whose floor in a node counts 2 (n-1). A broadcast begins where the one
  /// before has ended everywhere: they are launched on one stream, and each rank's is a kernel that waits for its data.
  Collective broadcasts(const std::vector<DeviceId>& members, Bytes payload, int owners) const;

  /// Tokens of experts exchanged: `bytes` by one rank in its node, and to all other nodes together. On its way to a node, what a GPU
  /// sends goes to the GPU of the same number among the members there, as if others' were relayed in the node. Where the fabric tells
  /// rails apart, what goes to other rails goes to that half of them further on: as all GPUs send alike, each rail then carries what it would if
  /// each sent to all.
  Collective exchange(const std::vector<DeviceId>& members, const Operation& operation,
                      const ExchangeBytes& bytes, const ExpertGroup& group) const;

  /// All-reduces of `payload` bytes in a tensor group across nodes, a half of one or several as one: every node edge carries all channels' bytes.
  Collective tensor_ring(const std::vector<DeviceId>& members, Bytes payload, double count) const;

 private:
  const PlanDevice& device(DeviceId id) const { return in_->plan->devices[id.index()]; }
  /// Refers to `members`.
  CollectiveMembers placed(const std::vector<DeviceId>& members) const;
  using Steps = std::function<CollectiveSteps(const CollectiveTask&)>;
  Collective made_of(const Steps& steps, const std::vector<DeviceId>& members, Bytes payload,
                     RingKind work, double copies) const;

  const BuildInputs* in_;
  const DeviceRoutes* routes_;
};

/// Builds the collectives of passes that are simulated operation by operation: gathers, scatters, token exchanges and tensor collectives,
/// each on its own.
class OperationCollectives {
 public:
  /// All must outlive it; `built` has its devices and what they cost.
  OperationCollectives(const BuildInputs& in, const CollectiveBuilder& collectives,
                       StageCostTable& costs, const TokenDraws& draws, BuiltPrograms& built);

  /// Adds those of every pass of every stage.
  void add();

 private:
  const PlanDevice& device(DeviceId id) const { return plan_.devices[id.index()]; }
  /// Adds the collectives of each kind of group among replicas, and of tensor groups across nodes.
  void add_groups(StageId stage);
  /// Adds the exchanges of each group of replicas that exchange tokens.
  void add_exchanges(StageId stage);
  /// Adds those of all passes that run over a group of this kind, whose members these are.
  void add_over(const std::vector<DeviceId>& members, GroupKind kind,
                AxisName axis = AxisName::data);
  Collective made_of(const std::vector<DeviceId>& members, const Operation& operation) const;
  /// Makes an exchange of this chunk depend on its draw of tokens.
  void set_draws(Collective& collective, int chunk);
  /// An exchange of tokens, with one rank's bytes and times as in the cost of its stage; those of a layer that has experts.
  Collective exchange(const std::vector<DeviceId>& members, const Operation& operation) const;

  const BuildInputs& in_;
  const Plan& plan_;
  const PlanGroups groups_;
  const CollectiveBuilder& collectives_;
  StageCostTable& costs_;
  const TokenDraws& draws_;
  BuiltPrograms& built_;
  /// Index of the first draw in ProgramSet::fullness, by first member and chunk.
  std::map<std::pair<DeviceId, int>, std::uint32_t> first_draw_;
  const double expert_load_;  ///< tokens of the fullest rank over the mean
};

/// The collectives of a plan that are no operation of a pass: of gradients and embeddings.
class PlanCollectives {
 public:
  /// All must outlive it; `built` has its devices and what they cost.
  PlanCollectives(const BuildInputs& in, const CodecPlan& codecs,
                  const CollectiveBuilder& collectives, const StageCostTable& costs,
                  BuiltPrograms& built)
      : in_(in),
        plan_(*in.plan),
        groups_(plan_),
        codecs_(codecs),
        collectives_(collectives),
        costs_(costs),
        built_(built) {}

  void add_gradient_reductions();
  /// The gradients of experts, among the devices that hold the same ones.
  void add_expert_reductions();
  void add_embedding_syncs();

 private:
  const PlanDevice& device(DeviceId id) const { return plan_.devices[id.index()]; }
  const StageCost& cost(DeviceId id) const { return built_.cost_of_device[id.index()]; }
  void add(Collective collective, std::uint32_t slot) {
    add_collective(built_.programs, std::move(collective), slot);
  }
  /// The gradients that these devices have copies of: all-reduced, or scattered.
  void add_reductions(const std::vector<DeviceId>& members);
  /// Adds the reductions of the shards that these devices, of different sharding groups, have copies of.
  void add_shard_reductions(const std::vector<DeviceId>& members);
  /// The parameters that these devices have stepped shards of.
  void add_parameter_gather(const std::vector<DeviceId>& members);
  /// Calls `add` with each group of this kind that holds the stage's parameters; all replicas where states are not shared out in groups.
  template <class Add>
  void for_each_group(StageId stage, GroupKind kind, const Add& add) const;
  /// A codec in two parts all-reduces both, so that every replica has all gradients and keeps its shard.
  void add_reduction(const std::vector<DeviceId>& members, const CodecStage& codec, Reduction of);
  void add_expert_reductions(const std::vector<DeviceId>& members);
  bool any_end_has(GroupKind kind) const;
  void add_embedding_sync(const std::vector<DeviceId>& members);

  const BuildInputs& in_;
  const Plan& plan_;
  const PlanGroups groups_;
  const CodecPlan& codecs_;
  const CollectiveBuilder& collectives_;
  const StageCostTable& costs_;
  BuiltPrograms& built_;
};

}  // namespace windtunnel
