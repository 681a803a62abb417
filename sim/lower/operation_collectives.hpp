#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "lower/collective_builder.hpp"
#include "lower/plan_groups.hpp"
#include "lower/program_builder.hpp"
#include "lower/stage_cost_table.hpp"
#include "lower/token_draws.hpp"

namespace windtunnel {

/// Where passes are played operation by operation: their gathers, scatters, exchanges and tensor collectives, each on its own.
class OperationCollectives {
 public:
  /// All must outlive it; `built` has its devices and what they cost.
  OperationCollectives(const BuildInputs& in, const CollectiveBuilder& collectives,
                       StageCostTable& costs, const TokenDraws& draws, BuiltPrograms& built);

  /// Those of every pass of every stage.
  void add();

 private:
  const PlanDevice& device(DeviceId id) const { return plan_.devices[id.index()]; }
  /// Of each kind of group among replicas, and of tensor groups across nodes.
  void add_groups(StageId stage);
  /// Of each group of replicas that exchange tokens.
  void add_exchanges(StageId stage);
  /// Those of all passes that run over a group of this kind, which is `members`.
  void add_over(const std::vector<DeviceId>& members, GroupKind kind,
                AxisName axis = AxisName::data);
  Collective made_of(const std::vector<DeviceId>& members, const Operation& operation) const;
  /// Adds what its tokens make of an exchange of this chunk.
  void set_draws(Collective& collective, int chunk);
  /// Of one rank, as the cost of its stage has them; alone: a layer that has experts.
  Collective exchange(const std::vector<DeviceId>& members, const Operation& operation) const;

  const BuildInputs& in_;
  const Plan& plan_;
  const PlanGroups groups_;
  const CollectiveBuilder& collectives_;
  StageCostTable& costs_;
  const TokenDraws& draws_;
  BuiltPrograms& built_;
  /// Where draws begin in ProgramSet::fullness, by first member and chunk.
  std::map<std::pair<DeviceId, int>, std::uint32_t> first_draw_;
  const double expert_load_;  ///< tokens of the fullest rank over the mean
};

}  // namespace windtunnel
