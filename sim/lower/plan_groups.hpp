#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "operations/label.hpp"
#include "plan/plan.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// Replicas at equal distances.
struct ReplicaGroup {
  int first = 0, step = 1, size = 1;
  int operator[](int i) const { return first + i * step; }
};

/// The replica's group of this kind:
///   axis         replicas that differ on `axis` alone, as those that have the other parts of its sequences
///   sharding     replicas that shard states among them
///   copies       replicas that hold the same shard
///   expert_data  replicas that hold the same experts
ReplicaGroup replicas_with(const Parallel& parallel, int replica, GroupKind kind,
                           AxisName axis = AxisName::data);

/// The replicas whose tensor groups exchange tokens of experts with this one's.
ReplicaGroup exchanging_replicas(const Parallel& parallel, int replica);

/// Process groups of a plan as lists of devices: the ones that have collectives together.
class PlanGroups {
 public:
  /// The plan must outlive it.
  explicit PlanGroups(const Plan& plan) : plan_(&plan) {}

  /// The same part of all stages that hold the parameters of `stage`, in all replicas.
  std::vector<DeviceId> holders_of(StageId stage, int part) const {
    return devices_of({0, 1, plan_->parallel.replicas()}, plan_->chunk_map().holders(stage), part);
  }
  bool is_first_holder(StageId stage) const {
    return plan_->chunk_map().holders(stage).front() == stage;
  }

  /// The nodes' parts of a tensor group.
  std::vector<DeviceId> tensor_group(int replica, StageId stage) const {
    return devices_of({replica, 1, 1}, {stage}, all_parts);
  }

  /// The group of this kind that the replica belongs to.
  std::vector<DeviceId> group_of(int replica, GroupKind kind, StageId stage, int part,
                                 AxisName axis = AxisName::data) const {
    return devices_of(replicas_with(plan_->parallel, replica, kind, axis), {stage}, part);
  }

  /// All parts of the replicas that exchange tokens of experts with this one.
  std::vector<DeviceId> exchanging(int replica, StageId stage) const {
    return devices_of(exchanging_replicas(plan_->parallel, replica), {stage}, all_parts);
  }

  /// Devices that hold the same experts, on every stage that holds the parameters of `stage`.
  std::vector<DeviceId> holders_of_experts(int replica, StageId stage, int part) const {
    return devices_of(replicas_with(plan_->parallel, replica, GroupKind::expert_data),
                      plan_->chunk_map().holders(stage), part);
  }

 private:
  static constexpr int all_parts = -1;
  std::vector<DeviceId> devices_of(const ReplicaGroup& group, const std::vector<StageId>& stages,
                                   int part) const {
    const bool is_one = part != all_parts;
    std::vector<DeviceId> members;
    for (const StageId stage : stages)
      for (int i = 0; i < group.size; ++i)
        for (int each = is_one ? part : 0;
             each < (is_one ? part + 1 : plan_->nodes_per_tensor_group); ++each)
          members.push_back(plan_->device(group[i], stage, each));
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
