#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "lower/codec_plan.hpp"
#include "lower/plan_groups.hpp"
#include "lower/program_builder.hpp"
#include "lower/token_draws.hpp"

namespace windtunnel {

/// What the stages of a plan cost, and where their rows are in the work table. Stages that cannot differ share both.
class StageCostTable {
 public:
  /// Rows are written to `set`, routes asked for of `network`; all must outlive the table.
  StageCostTable(const BuildInputs& in, bool plays_operations, const CodecPlan& codecs,
                 const TokenDraws& draws, Network& network, ProgramSet& set)
      : in_(&in),
        plays_operations_(plays_operations),
        plan_(in.plan),
        codecs_(&codecs),
        draws_(&draws),
        network_(&network),
        set_(&set),
        axes_(cut_axes(in.plan->parallel)) {}

  struct Entry {
    std::shared_ptr<const StageCost> cost;
    std::uint32_t work_base = 0;
  };
  const Entry& of(const PlanDevice& device);
  CodecStage codec_stage(const PlanDevice& device, const StageCost& cost) const;
  /// The devices that exchange tokens with this one.
  const ExpertGroup& expert_group(const PlanDevice& device);

 private:
  /// The role of each chunk in its place (with both_ways the first and the last stage have the same two, the other way round), kind of node
  /// and GPUs, nodes and GPUs of the groups of ZeRO 3 and along axes, what is compressed on which way, and how those who exchange tokens lie.
  using Key = std::tuple<std::vector<ChunkRole>, const NodeType*, int, std::vector<int>,
                         std::vector<std::pair<int, std::vector<int>>>, bool, BytesPerSecond,
                         BytesPerSecond, std::array<int, 4>>;

  const Entry& by_key(const PlanDevice& device);
  /// As `known`, with rows of its own for what the device's tokens make of its passes.
  const Entry& with_draws(const PlanDevice& device, const Entry& known);
  /// Whether its kind of node and its number of GPUs tell a device from the others of its stage.
  bool is_plain(const NodeType& type) const;
  const NodeType& node_type(NodeId node) const { return (*in_->nodes)[node.index()]; }
  /// ZeRO 3: every pass gathers its layers' parameters over the replicas.
  bool gathers_layers() const {
    return plan_->parallel.replicas() > 1 && plan_->parallel.zero_stage == 3;
  }
  /// Whether messages are encoded in chunks, so that the cost depends on their route.
  bool sends_in_chunks() const;
  /// The device's group of this kind, as the first rank of its stage and part of the tensor group sees it.
  const DataGroup& data_group(const PlanDevice& device, GroupKind kind,
                              AxisName axis = AxisName::data);
  DataGroup described(const PlanDevice& device, GroupKind kind, AxisName axis) const;
  ExpertGroup described_experts(const PlanDevice& device) const;
  /// Bandwidth of the slowest route to one of these stages; zero unless messages are sent in chunks.
  BytesPerSecond slowest_way(const PlanDevice& device, const std::vector<StageId>& stages) const;
  BytesPerSecond way_to_next(const PlanDevice& device) const;
  BytesPerSecond way_to_previous(const PlanDevice& device) const;
  BytesPerSecond way_to(const PlanDevice& device, StageId stage) const;
  std::vector<ChunkRole> roles_of(StageId stage) const;
  void write_rows(const PlanDevice& device, Entry& entry);

  const BuildInputs* in_;
  bool plays_operations_;
  const Plan* plan_;
  const CodecPlan* codecs_;
  const TokenDraws* draws_;
  Network* network_;
  ProgramSet* set_;
  std::vector<AxisName> axes_;  ///< cut_axes()
  std::map<Key, Entry> entries_;
  /// By kind, axis, stage, part of the tensor group, and first replica. Members share one description: to make it takes a walk through
  /// them all.
  std::map<std::tuple<GroupKind, AxisName, StageId, int, int>, DataGroup> data_groups_;
  /// By stage and first replica.
  std::map<std::tuple<StageId, int>, ExpertGroup> expert_groups_;
  /// By entry, stage, and number of the first replica of those that exchange tokens.
  std::map<std::tuple<const Entry*, StageId, int>, Entry> drawn_;
  /// Of plain devices, by stage: so that not every device has a key made.
  struct Plain {
    const NodeType* type = nullptr;
    int gpus = 0;
    const Entry* entry = nullptr;
  };
  std::vector<std::vector<Plain>> plain_;
};

}  // namespace windtunnel
