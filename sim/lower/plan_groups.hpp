#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lower/stage_cost_table.hpp"
#include "plan/plan.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// Which devices of a plan have collectives together.
class PlanGroups {
 public:
  /// The plan must outlive it.
  explicit PlanGroups(const Plan& plan) : plan_(&plan) {}

  /// The same part of all stages that hold the parameters of `stage`, in all replicas.
  std::vector<DeviceId> holders_of(StageId stage, int part) const {
    std::vector<DeviceId> members;
    for (const StageId holder : plan_->chunk_map().holders(stage))
      for (int replica = 0; replica < plan_->parallel.replicas(); ++replica)
        members.push_back(plan_->device(replica, holder, part));
    return members;
  }
  bool is_first_holder(StageId stage) const {
    return plan_->chunk_map().holders(stage).front() == stage;
  }

  /// The nodes' parts of a tensor group.
  std::vector<DeviceId> parts_of(int replica, StageId stage) const {
    std::vector<DeviceId> members;
    for (int part = 0; part < plan_->nodes_per_tensor_group; ++part)
      members.push_back(plan_->device(replica, stage, part));
    return members;
  }

  /// The group of this kind that the replica belongs to.
  std::vector<DeviceId> group_of(int replica, GroupKind kind, StageId stage, int part) const {
    return in_replicas(replicas_with(plan_->parallel, replica, kind), stage, part);
  }

  /// All parts of the replicas that exchange tokens of experts with this one.
  std::vector<DeviceId> exchanging(int replica, StageId stage) const {
    std::vector<DeviceId> members;
    for (const int other : replicas_of_experts(plan_->parallel, replica))
      for (const DeviceId part : parts_of(other, stage)) members.push_back(part);
    return members;
  }

  /// Those that hold the same experts, on every stage that holds the parameters of `stage`.
  std::vector<DeviceId> holders_of_experts(int replica, StageId stage, int part) const {
    std::vector<DeviceId> members;
    for (const StageId holder : plan_->chunk_map().holders(stage))
      for (const DeviceId member :
           in_replicas(replicas_of_same_experts(plan_->parallel, replica), holder, part))
        members.push_back(member);
    return members;
  }

 private:
  std::vector<DeviceId> in_replicas(const std::vector<int>& replicas, StageId stage,
                                    int part) const {
    std::vector<DeviceId> members;
    for (const int replica : replicas) members.push_back(plan_->device(replica, stage, part));
    return members;
  }

  const Plan* plan_;
};

/// Enters its members into a collective, in this slot of their programs.
inline void add_collective(ProgramSet& set, Collective collective, std::uint32_t slot) {
  const CollectiveId id{set.collectives.size()};
  for (const DeviceId member : collective.members)
    set.devices[member.index()].collectives[slot] = id;
  set.collectives.push_back(std::move(collective));
}

}  // namespace windtunnel
