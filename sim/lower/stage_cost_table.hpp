#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "cost/stage_cost.hpp"
#include "lower/codec_plan.hpp"
#include "lower/plan_groups.hpp"
#include "lower/program_builder.hpp"
#include "lower/token_draws.hpp"
#include "plan/plan.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// Maps each device of a plan to the cost of its stage and to its rows in the work table of the ProgramSet. Devices whose cost cannot differ
/// (same chunks, kind of node, groups and routes) share both: 4,096 GPUs in one kind of node with 8 stages have some 8 entries.
/// build_programs() asks it for one device after another.
class StageCostTable {
 public:
  /// Rows are written to `set`, routes asked for of `network`; all must outlive the table.
  StageCostTable(const BuildInputs& in, bool by_operation, const CodecPlan& codecs,
                 const TokenDraws& draws, Network& network, ProgramSet& set)
      : in_(&in),
        by_operation_(by_operation),
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
  /// The role of each chunk in its place (in a bidirectional schedule the first and the last stage have the same two, in opposite order),
  /// kind of node and GPUs, nodes and GPUs of the groups of ZeRO 3 and along axes, what is compressed on which route, and how the ranks that
  /// exchange tokens lie.
  using Key = std::tuple<std::vector<ChunkRole>, const NodeType*, int, std::vector<int>,
                         std::vector<std::pair<int, std::vector<int>>>, bool, BytesPerSecond,
                         BytesPerSecond, std::array<int, 4>>;

  const Entry& by_key(const PlanDevice& device);
  /// As `known`, with rows of its own for what the device's tokens make of its passes.
  const Entry& with_draws(const PlanDevice& device, const Entry& known);
  /// True if kind of node and number of GPUs alone distinguish a device from the others of its stage.
  bool is_plain(const NodeType& type) const;
  const NodeType& node_type(NodeId node) const { return (*in_->nodes)[node.index()]; }
  /// ZeRO 3: every pass gathers its layers' parameters over the replicas.
  bool gathers_layers() const {
    return plan_->parallel.replicas() > 1 && plan_->parallel.gathers_in_passes();
  }
  /// True if passes reduce gradients during their kernels.
  bool overlaps_reductions() const {
    return plan_->parallel.overlap_gradient_reduce && reduces_by_chunk(*plan_);
  }
  /// True if kernels overlap with collectives of the replicas, so that the cost depends on the replicas' placement.
  bool meets_replicas() const { return gathers_layers() || overlaps_reductions(); }
  /// True if messages are encoded in chunks, so that the cost depends on their route.
  bool sends_in_chunks() const;
  /// The device's group of this kind, as the first rank of its stage and part of the tensor group sees it.
  const DataGroup& data_group(const PlanDevice& device, GroupKind kind,
                              AxisName axis = AxisName::data);
  DataGroup described(const PlanDevice& device, GroupKind kind, AxisName axis) const;
  ExpertGroup described_experts(const PlanDevice& device) const;
  /// Bandwidth of the slowest route to one of these stages; zero unless messages are sent in chunks.
  BytesPerSecond slowest_bandwidth(const PlanDevice& device,
                                   const std::vector<StageId>& stages) const;
  BytesPerSecond bandwidth_to_next(const PlanDevice& device) const;
  BytesPerSecond bandwidth_to_previous(const PlanDevice& device) const;
  BytesPerSecond bandwidth_to(const PlanDevice& device, StageId stage) const;
  std::vector<ChunkRole> roles_of(StageId stage) const;
  void write_rows(const PlanDevice& device, Entry& entry);
  /// Writes what a piece of a pass takes longer while the bucket before it is reduced. Limit: passes behind the one that reduces, which run
  /// during its last buckets, are not slowed down.
  void slow_down_under_reductions(const PlanDevice& device, const Entry& entry);

  const BuildInputs* in_;
  bool by_operation_;
  const Plan* plan_;
  const CodecPlan* codecs_;
  const TokenDraws* draws_;
  Network* network_;
  ProgramSet* set_;
  std::vector<AxisName> axes_;  ///< cut_axes()
  std::map<Key, Entry> entries_;
  /// By kind, axis, stage, part of the tensor group, first replica, and type of node. Members on one type share a description: to make it
  /// takes a walk through them all.
  std::map<std::tuple<GroupKind, AxisName, StageId, int, int, const NodeType*>, DataGroup>
      data_groups_;
  /// By stage and first replica.
  std::map<std::tuple<StageId, int>, ExpertGroup> expert_groups_;
  /// By entry, stage, and number of the first replica of those that exchange tokens.
  std::map<std::tuple<const Entry*, StageId, int>, Entry> drawn_;
  /// Entries of plain devices, by stage, so that no key is made for every device.
  struct Plain {
    const NodeType* type = nullptr;
    int gpus = 0;
    const Entry* entry = nullptr;
  };
  std::vector<std::vector<Plain>> plain_;
};

/// Costs of a stage's passes and of the kernels at its end, in the order of ChunkRow and DeviceRow. The last pass of a chunk is
/// cut into `buckets` pieces.
std::vector<Work> work_table(const StageCost& cost, const Plan& plan, int buckets);

/// A table as long as OperationPlaces says, with the rows of all operations of a stage's passes in their places.
std::vector<Work> operation_rows(const StageOperations& chunks,
                                 const std::vector<Direction>& directions);

/// The row of a pass that does this.
Work work_of(const PassTimes& times);
/// The row of an operation in this company, in a draw of that fullness; what it costs kernels is the collectives'.
Work work_of(const PassOperations& pass, const PlacedOperation& placed, double fullness = 1);
/// One of so many equal pieces.
Work piece_of(Work work, int pieces);

/// A row with one part.
Work work_of(Seconds duration, Part part);

/// The chunk that an operation of a pass or block is of, where the pass, or the forward pass of the block, is of `ahead`.
std::size_t chunk_of(const Operation& operation, std::size_t ahead);

/// Writes the rows of passes that meet other tokens in every microbatch (ProgramSet::drawn_rows), where tokens are not spread evenly.
class DrawnRowWriter {
 public:
  /// All must outlive it.
  DrawnRowWriter(const Plan& plan, bool by_operation, const TokenDraws& draws, ProgramSet& set)
      : by_operation_(by_operation), plan_(plan), draws_(draws), set_(set) {}

  /// For a device whose work table begins at `work_base` and holds the mean draw.
  void write(const PlanDevice& device, const StageCost& cost, std::uint32_t work_base);

 private:
  using Fullness = TokenDraws::OfChunk;
  std::vector<Fullness> fullness_of(const PlanDevice& device) const;
  void write_passes(StageId stage, const StageCost& cost, const std::vector<Fullness>& fullness);
  void write_blocks(StageId stage, const StageCost& cost, const std::vector<Fullness>& fullness);
  void write_operations(const StageCost& cost, const std::vector<Fullness>& fullness);
  std::uint32_t microbatches() const { return static_cast<std::uint32_t>(plan_.microbatches); }
  /// Room for rows that stand for this one, one of each microbatch of so many layers; where they begin.
  std::uint32_t add_rows(std::uint16_t row, std::size_t layers);

  bool by_operation_;
  const Plan& plan_;
  const TokenDraws& draws_;
  ProgramSet& set_;
  std::uint32_t work_base_ = 0;
  std::array<PlacedPass, 2> placed_blocks_;  ///< by the chunk of their forward pass
};

}  // namespace windtunnel
