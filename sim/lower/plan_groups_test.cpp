#include "lower/plan_groups.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace windtunnel {
namespace {

std::vector<int> members(const ReplicaGroup& group) {
  std::vector<int> replicas;
  for (int i = 0; i < group.size; ++i) replicas.push_back(group[i]);
  return replicas;
}

using Members = std::vector<int>;

TEST_CASE(
    "replicas that cut a sequence or shard states are neighbours, those that hold copies are not") {
  Parallel parallel;
  parallel.data = 6;
  parallel.context = 2;  // 12 replicas
  parallel.zero_stage = 1;
  parallel.zero_group = 4;
  CHECK(members(replicas_with(parallel, 5, GroupKind::axis, AxisName::context)) == Members{4, 5});
  CHECK(members(replicas_with(parallel, 5, GroupKind::sharding)) == Members{4, 5, 6, 7});
  CHECK(members(replicas_with(parallel, 5, GroupKind::copies)) == Members{1, 5, 9});
}

TEST_CASE(
    "replicas exchange tokens with their neighbours, and share experts with the same place of "
    "other groups") {
  Parallel parallel;
  parallel.data = 8;
  parallel.expert = 4;
  CHECK(members(exchanging_replicas(parallel, 5)) == Members{4, 5, 6, 7});
  CHECK(members(replicas_with(parallel, 5, GroupKind::expert_data)) == Members{1, 5});
  parallel.tensor = 2;  // two ranks of each tensor group: two replicas hold the four experts' ranks
  CHECK(members(exchanging_replicas(parallel, 5)) == Members{4, 5});
  CHECK(members(replicas_with(parallel, 5, GroupKind::expert_data)) == Members{1, 3, 5, 7});
}

TEST_CASE(
    "where experts and tensor groups do not divide one another, every replica shares experts with "
    "every other") {
  Parallel parallel;
  parallel.tensor = 2;
  parallel.data = 6;
  parallel.expert = 3;
  CHECK(members(replicas_with(parallel, 4, GroupKind::expert_data)) == Members{0, 1, 2, 3, 4, 5});
}

}  // namespace
}  // namespace windtunnel
