#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "lower/codec_plan.hpp"
#include "lower/program_builder.hpp"

namespace windtunnel {

/// The replicas that this one shares its states out with, or that hold copies of its shard.
std::vector<int> replicas_with(const Parallel& parallel, int replica, GroupKind kind);

/// What the stages of a plan cost, and where their rows stand in the work table: stages that cannot differ share both.
class StageCostTable {
 public:
  /// Rows are written to `work`, routes asked for of `network`; all must outlive the table.
  StageCostTable(const BuildInputs& in, const CodecPlan& codecs, Network& network,
                 std::vector<Work>& work)
      : in_(&in), plan_(in.plan), codecs_(&codecs), network_(&network), work_(&work) {}

  struct Entry {
    StageCost cost;
    std::uint32_t work_base = 0;
  };
  const Entry& of(const PlanDevice& device);
  CodecStage codec_stage(const PlanDevice& device, const StageCost& cost) const;

 private:
  /// Layers and role, kind of node and GPUs, groups of ZeRO 3, and what is compressed on which way.
  using Key =
      std::tuple<int, bool, bool, const NodeType*, int, std::vector<int>, int, std::vector<int>,
                 int, std::vector<int>, bool, BytesPerSecond, BytesPerSecond>;

  const NodeType& node_type(NodeId node) const { return (*in_->nodes)[node.index()]; }
  /// ZeRO 3: every pass gathers its layers' parameters over the replicas.
  bool gathers_layers() const {
    return plan_->parallel.data > 1 && plan_->parallel.zero_stage == 3;
  }
  /// Such a group of this device's stage and node of the tensor group, as its first rank sees it.
  DataGroup data_group(const PlanDevice& device, GroupKind kind) const;
  /// Bandwidth of the slowest way to one of these stages, where messages go in chunks; else none is looked for.
  BytesPerSecond slowest_way(const PlanDevice& device, const std::vector<StageId>& stages) const;
  BytesPerSecond way_to_next(const PlanDevice& device) const;
  BytesPerSecond way_to_previous(const PlanDevice& device) const;
  BytesPerSecond way_to(const PlanDevice& device, StageId stage) const;
  BytesPerSecond slowest_link(PathId path) const;
  void write_rows(const PlanDevice& device, Entry& entry);

  const BuildInputs* in_;
  const Plan* plan_;
  const CodecPlan* codecs_;
  Network* network_;
  std::vector<Work>* work_;
  std::map<Key, Entry> entries_;
};

}  // namespace windtunnel
