#include "lower/plan_groups.hpp"

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

/// Every `step`-th replica, from `replica` modulo `step` on.
ReplicaGroup each_nth(const Parallel& parallel, int replica, int step) {
  const int first = replica % step;
  return {first, step, (parallel.replicas() - first + step - 1) / step};
}

ReplicaGroup neighbours(int replica, int size) { return {replica / size * size, 1, size}; }

}  // namespace

ReplicaGroup replicas_with(const Parallel& parallel, int replica, GroupKind kind, AxisName axis) {
  if (kind == GroupKind::axis) {
    const Layout layout = replica_layout(parallel);
    const int step = layout.stride(axis);
    return {replica - layout.coordinate(RankId{replica}, axis) * step, step, layout.size(axis)};
  }
  if (kind == GroupKind::replicas) return {0, 1, parallel.replicas()};
  if (kind == GroupKind::sharding) return neighbours(replica, sharding_group_size(parallel));
  if (kind == GroupKind::copies) return each_nth(parallel, replica, sharding_group_size(parallel));
  WT_EXPECT(kind == GroupKind::expert_data);
  // If neither of expert group and tensor group divides the other, every replica holds experts of every other.
  const int group = expert_group_size(parallel);
  const bool mixed = group % parallel.tensor != 0 && parallel.tensor % group != 0;
  return each_nth(parallel, replica, mixed ? 1 : replicas_of_experts(parallel));
}

ReplicaGroup exchanging_replicas(const Parallel& parallel, int replica) {
  return neighbours(replica, replicas_of_experts(parallel));
}

}  // namespace windtunnel
