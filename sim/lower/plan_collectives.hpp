#pragma once

#include <cstdint>
#include <vector>

#include "lower/codec_plan.hpp"
#include "lower/collective_builder.hpp"
#include "lower/plan_groups.hpp"
#include "lower/program_builder.hpp"
#include "lower/stage_cost_table.hpp"

namespace windtunnel {

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
  /// The gradients that these devices have copies of: all-reduced, or scattered with the parameters gathered after the step (ZeRO 1 and 2).
  void add_data_collectives(const std::vector<DeviceId>& members);
  /// A codec in two parts all-reduces both, so that every replica has all gradients and keeps its shard.
  /// `copies`: ranks of a member that hold the same gradients.
  void add_reduction(const std::vector<DeviceId>& members, const EncodedCollective& encoded,
                     bool two_parts, std::uint32_t slot, std::uint32_t second_slot,
                     double copies = 1);
  void add_expert_reductions(const std::vector<DeviceId>& members);
  bool any_end_has(Label label) const;
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
