#include "lower/stage_cost_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>

#include "lower/drawn_rows.hpp"
#include "lower/work_table.hpp"
#include "plan/gradient_reduction.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {

const StageCostTable::Entry& StageCostTable::of(const PlanDevice& d) {
  const NodeType& type = in_->platform->type_of(d.node);
  if (draws_->vary()) return with_draws(d, by_key(d));
  if (!is_plain(type)) return by_key(d);
  plain_.resize(static_cast<std::size_t>(plan_->parallel.pipeline));
  std::vector<Plain>& known = plain_[d.stage.index()];
  for (const Plain& each : known)
    if (each.type == &type && each.gpus == d.num_gpus()) return *each.entry;
  known.push_back({&type, d.num_gpus(), &by_key(d)});
  return *known.back().entry;
}

bool StageCostTable::is_plain(const NodeType& type) const {
  return type.interconnect.kind != Interconnect::Kind::mesh && !gathers_layers() && axes_.empty() &&
         !sends_in_chunks() && expert_ways(plan_->parallel) == 1;
}

bool StageCostTable::sends_in_chunks() const {
  const auto in_chunks = [](const std::optional<Compressor>& c) { return c && c->chunks > 1; };
  return in_chunks(plan_->compression.pipeline_forward) ||
         in_chunks(plan_->compression.pipeline_backward);
}

const StageCostTable::Entry& StageCostTable::by_key(const PlanDevice& d) {
  const NodeType& node = node_type(d.node);
  const bool position_matters = node.interconnect.kind == Interconnect::Kind::mesh;
  const DataGroup gathered_over =
      gathers_layers() ? data_group(d, GroupKind::sharding) : DataGroup{};
  const DataGroup copies = gathers_layers() ? data_group(d, GroupKind::copies) : DataGroup{};
  const DataGroup same_experts =
      gathers_layers() && in_->model->moe ? data_group(d, GroupKind::expert_data) : DataGroup{};
  std::map<AxisName, DataGroup> along;
  for (const AxisName axis : axes_) along[axis] = data_group(d, GroupKind::axis, axis);
  std::vector<std::pair<int, std::vector<int>>> groups;
  const auto add = [&groups, position_matters](const DataGroup& group) {
    groups.emplace_back(group.nodes,
                        position_matters
                            ? group.gpus_in_node
                            : std::vector<int>{static_cast<int>(group.gpus_in_node.size())});
  };
  for (const DataGroup* group : {&gathered_over, &copies, &same_experts}) add(*group);
  for (const auto& [axis, group] : along) add(group);
  const ExpertGroup experts = expert_group(d);
  const Key key{roles_of(d.stage),
                &in_->platform->type_of(d.node),
                d.num_gpus(),
                position_matters ? d.gpus : std::vector<int>{},
                groups,
                compresses_gradients(plan_->compression, static_cast<int>(d.stage.index())),
                way_to_next(d),
                way_to_previous(d),
                {experts.ranks, experts.nodes, experts.most_in_node, experts.fewest_in_node}};
  const auto [found, is_new] = entries_.try_emplace(key);
  if (is_new) {
    found->second.cost = std::make_shared<const StageCost>(
        stage_cost({in_->model, plan_, in_->software, &node, &in_->platform->fabric, d.stage,
                    d.gpus, gathered_over, along, copies, experts, same_experts}));
    write_rows(d, found->second);
  }
  return found->second;
}

const StageCostTable::Entry& StageCostTable::with_draws(const PlanDevice& d, const Entry& known) {
  const int first = exchanging_replicas(plan_->parallel, d.replica).first;
  const auto [found, is_new] = drawn_.try_emplace({&known, d.stage, first}, known);
  if (is_new) {
    write_rows(d, found->second);
    DrawnRowWriter(*plan_, plays_operations_, *draws_, *set_)
        .write(d, *known.cost, found->second.work_base);
  }
  return found->second;
}

std::vector<ChunkRole> StageCostTable::roles_of(StageId stage) const {
  std::vector<ChunkRole> roles;
  for (int chunk = 0; chunk < plan_->parallel.virtual_pipeline; ++chunk)
    roles.push_back(chunk_role(*in_->model, *plan_, {stage, chunk}));
  return roles;
}

/// Rows of operations stand where OperationPlaces has them.
void StageCostTable::write_rows(const PlanDevice& d, Entry& entry) {
  std::vector<Work>& work = set_->work;
  entry.work_base = static_cast<std::uint32_t>(work.size());
  const auto append = [&work](const std::vector<Work>& rows, std::size_t first) {
    work.insert(work.end(), rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end());
  };
  append(work_table(*entry.cost, *plan_, gradient_buckets(*plan_, d.stage)), 0);
  append(codecs_->rows(codec_stage(d, *entry.cost)), 0);
  if (plays_operations_)
    append(operation_rows(operations_of(*entry.cost),
                          directions_of(plan_->parallel.schedule->splits_backward)),
           work.size() - entry.work_base);
}

CodecStage StageCostTable::codec_stage(const PlanDevice& d, const StageCost& cost) const {
  return {d.stage,        &node_type(d.node).device, &cost, d.num_gpus(),
          way_to_next(d), way_to_previous(d)};
}

BytesPerSecond StageCostTable::way_to_next(const PlanDevice& d) const {
  return slowest_way(d, plan_->chunk_map().stages_behind(d.stage));
}
BytesPerSecond StageCostTable::way_to_previous(const PlanDevice& d) const {
  return slowest_way(d, plan_->chunk_map().stages_before(d.stage));
}

BytesPerSecond StageCostTable::slowest_way(const PlanDevice& d,
                                           const std::vector<StageId>& stages) const {
  if (stages.empty() || !sends_in_chunks()) return {};
  BytesPerSecond slowest = way_to(d, stages.front());
  for (const StageId stage : stages) slowest = std::min(slowest, way_to(d, stage));
  return slowest;
}

BytesPerSecond StageCostTable::way_to(const PlanDevice& d, StageId stage) const {
  const DeviceId id = plan_->device(d.replica, stage, d.group_node);
  const PlanDevice& to = plan_->devices[id.index()];
  if (to.node == d.node)
    return node_type(d.node).interconnect.point_to_point * static_cast<double>(d.num_gpus());
  const Route route = network_->route({d.node, d.gpus}, {to.node, to.gpus});
  return network_->rate_alone({route.up, route.down});
}

const ExpertGroup& StageCostTable::expert_group(const PlanDevice& d) {
  const int first = exchanging_replicas(plan_->parallel, d.replica).first;
  const auto [found, is_new] = expert_groups_.try_emplace({d.stage, first});
  if (is_new) found->second = described_experts(d);
  return found->second;
}

/// One of each group of ranks that cut an expert: those are neighbours, and in one node. Of several groups in the same tensor groups the one
/// on most nodes.
ExpertGroup StageCostTable::described_experts(const PlanDevice& d) const {
  const Parallel& parallel = plan_->parallel;
  if (expert_ways(parallel) == 1) return {};
  std::vector<NodeId> nodes;  // of all their ranks, in order
  const ReplicaGroup replicas = exchanging_replicas(parallel, d.replica);
  for (int i = 0; i < replicas.size; ++i)
    for (int part = 0; part < plan_->nodes_per_tensor_group; ++part) {
      const PlanDevice& member = plan_->devices[plan_->device(replicas[i], d.stage, part).index()];
      nodes.insert(nodes.end(), static_cast<std::size_t>(member.num_gpus()), member.node);
    }
  std::map<NodeId, int> ranks_by_node;
  const auto ways = static_cast<std::size_t>(expert_ways(parallel));
  for (std::size_t first = 0; first < nodes.size(); first += ways) {
    std::map<NodeId, int> of_group;
    for (std::size_t rank = first; rank < first + ways; ++rank) ++of_group[nodes[rank]];
    if (of_group.size() > ranks_by_node.size()) ranks_by_node = of_group;
  }
  ExpertGroup group;
  group.ranks = parallel.expert;
  group.nodes = static_cast<int>(ranks_by_node.size());
  group.most_in_node = 0;
  group.fewest_in_node = group.ranks;
  for (const auto& [node, ranks] : ranks_by_node) {
    const int exchanging = std::max(1, ranks / parallel.expert_tensor);
    group.most_in_node = std::max(group.most_in_node, exchanging);
    group.fewest_in_node = std::min(group.fewest_in_node, exchanging);
  }
  return group;
}

const DataGroup& StageCostTable::data_group(const PlanDevice& d, GroupKind kind, AxisName axis) {
  const int first = replicas_with(plan_->parallel, d.replica, kind, axis).first;
  const auto [found, is_new] = data_groups_.try_emplace({kind, axis, d.stage, d.group_node, first});
  if (is_new) found->second = described(d, kind, axis);
  return found->second;
}

DataGroup StageCostTable::described(const PlanDevice& d, GroupKind kind, AxisName axis) const {
  const ReplicaGroup replicas = replicas_with(plan_->parallel, d.replica, kind, axis);
  DataGroup group;
  if (kind == GroupKind::expert_data)
    group.ranks_of_tensor_group = expert_copies_in_tensor_group(plan_->parallel);
  group.members = static_cast<int>(std::lround(replicas.size * group.ranks_of_tensor_group));
  std::map<NodeId, std::vector<int>> members_by_node;
  for (int i = 0; i < replicas.size; ++i) {
    const DeviceId id = plan_->device(replicas[i], d.stage, d.group_node);
    const PlanDevice& member = plan_->devices[id.index()];
    const auto taking_part =
        std::min(std::ssize(member.gpus),
                 static_cast<std::ptrdiff_t>(std::ceil(group.ranks_of_tensor_group)));
    std::vector<int>& gpus = members_by_node[member.node];
    gpus.insert(gpus.end(), member.gpus.begin(), member.gpus.begin() + taking_part);
  }
  group.nodes = static_cast<int>(members_by_node.size());
  for (const auto& [node, gpus] : members_by_node)
    if (gpus.size() > group.gpus_in_node.size()) group.gpus_in_node = gpus;
  return group;
}

}  // namespace windtunnel
