#include "lower/stage_cost_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>

#include "core/contracts.hpp"
#include "cost/kernel_cost.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
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
  return type.interconnect.kind != Interconnect::Kind::mesh && !meets_replicas() && axes_.empty() &&
         !sends_in_chunks() && expert_group_size(plan_->parallel) == 1;
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
      meets_replicas() ? data_group(d, plan_->reducing_replicas() < plan_->parallel.replicas() ||
                                               gathers_layers()
                                           ? GroupKind::sharding
                                           : GroupKind::replicas)
                       : DataGroup{};
  const DataGroup copies = meets_replicas() ? data_group(d, GroupKind::copies) : DataGroup{};
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
                bandwidth_to_next(d),
                bandwidth_to_previous(d),
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
    DrawnRowWriter(*plan_, by_operation_, *draws_, *set_)
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
  if (overlaps_reductions()) slow_down_under_reductions(d, entry);
  append(codecs_->rows(codec_stage(d, *entry.cost)), 0);
  if (by_operation_)
    append(operation_rows(operations_of(*entry.cost),
                          directions_of(plan_->parallel.schedule->splits_backward)),
           work.size() - entry.work_base);
}

void StageCostTable::slow_down_under_reductions(const PlanDevice& d, const Entry& entry) {
  const double pieces = gradient_buckets(*plan_, d.stage);
  const CodecStage codec = codec_stage(d, *entry.cost);
  for (std::size_t chunk = 0; chunk < entry.cost->chunks.size(); ++chunk) {
    const ChunkCost& cost = entry.cost->chunks[chunk];
    const int number = static_cast<int>(chunk);
    const EncodedCollective bucket = codecs_->reduced(codec, {number});
    const double sent =
        cost.reductions.front().payload > Bytes{0}
            ? (bucket.payload + bucket.second_payload) * pieces / cost.reductions.front().payload
            : 1;
    Seconds reduced{};
    for (const Operation& reduction : cost.reductions)
      reduced += reduction.time * (group_of(reduction.label) != GroupKind::expert_data ? sent : 1) /
                 pieces;
    const auto row = [&](ChunkRow which) -> Work& {
      return set_->work[entry.work_base + row_of(which, number)];
    };
    const Seconds kernels = row(ChunkRow::last_piece).parts[Part::compute];
    row(ChunkRow::reduction_slowdown) = work_of(
        overlap_slowdown(reduced, kernels, entry.cost->taken_by_collectives), Part::compute);
  }
}

CodecStage StageCostTable::codec_stage(const PlanDevice& d, const StageCost& cost) const {
  return {d.stage,      &node_type(d.node).device, &cost,
          d.num_gpus(), bandwidth_to_next(d),      bandwidth_to_previous(d)};
}

BytesPerSecond StageCostTable::bandwidth_to_next(const PlanDevice& d) const {
  return slowest_bandwidth(d, plan_->chunk_map().stages_behind(d.stage));
}
BytesPerSecond StageCostTable::bandwidth_to_previous(const PlanDevice& d) const {
  return slowest_bandwidth(d, plan_->chunk_map().stages_before(d.stage));
}

BytesPerSecond StageCostTable::slowest_bandwidth(const PlanDevice& d,
                                                 const std::vector<StageId>& stages) const {
  if (stages.empty() || !sends_in_chunks()) return {};
  BytesPerSecond slowest = bandwidth_to(d, stages.front());
  for (const StageId stage : stages) slowest = std::min(slowest, bandwidth_to(d, stage));
  return slowest;
}

BytesPerSecond StageCostTable::bandwidth_to(const PlanDevice& d, StageId stage) const {
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
  if (expert_group_size(parallel) == 1) return {};
  std::vector<NodeId> nodes;  // of all their ranks, in order
  const ReplicaGroup replicas = exchanging_replicas(parallel, d.replica);
  for (int i = 0; i < replicas.size; ++i)
    for (int part = 0; part < plan_->nodes_per_tensor_group; ++part) {
      const PlanDevice& member = plan_->devices[plan_->device(replicas[i], d.stage, part).index()];
      nodes.insert(nodes.end(), static_cast<std::size_t>(member.num_gpus()), member.node);
    }
  std::map<NodeId, int> ranks_by_node;
  const auto group_size = static_cast<std::size_t>(expert_group_size(parallel));
  for (std::size_t first = 0; first < nodes.size(); first += group_size) {
    std::map<NodeId, int> of_group;
    for (std::size_t rank = first; rank < first + group_size; ++rank) ++of_group[nodes[rank]];
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
  const auto [found, is_new] = data_groups_.try_emplace(
      {kind, axis, d.stage, d.group_node, first, &in_->platform->type_of(d.node)});
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
  // A device's cost is worked out with the links of its own type of node, which may have fewer GPUs than another.
  const int own_gpus = in_->platform->type_of(d.node).gpus;
  for (const auto& [node, gpus] : members_by_node)
    if (std::ranges::max(gpus) < own_gpus && gpus.size() > group.gpus_in_node.size())
      group.gpus_in_node = gpus;
  return group;
}

namespace {

Work work_of(const PassCost& pass) {
  Work work{pass.duration, pass.parts, pass.floor};
  work.parts[Part::other] = pass.floor_share();
  return work;
}

}  // namespace

Work piece_of(Work work, int pieces) {
  work.duration = work.duration / static_cast<double>(pieces);
  for (Seconds& part : work.parts) part = part / static_cast<double>(pieces);
  for (Seconds* part : {&work.floor.launch, &work.floor.elsewhere, &work.floor.kernels_elsewhere})
    *part = *part / static_cast<double>(pieces);
  return work;
}

Work work_of(const PassTimes& times) {
  Work work;
  work.parts = times;
  for (const Seconds part : times) work.duration += part;
  return work;
}

Work work_of(const PassOperations& pass, const PlacedOperation& placed, double fullness) {
  const Operation& operation = pass[placed.number];
  const Seconds own = time_of(operation, fullness);
  Work work;
  work.duration = duration_of(pass, placed, fullness);
  work.parts[row_of(operation.label).part] = own;
  if (work.duration > own) work.parts[Part::data_comm] = work.duration - own;
  if (operation.label == Label::launch_floor) work.floor = pass.floor;
  return work;
}

std::vector<Work> operation_rows(const StageOperations& chunks,
                                 const std::vector<Direction>& directions) {
  const OperationPlaces places(chunks, directions);
  if (places.num_rows() > OperationPlaces::most_rows)
    throw UnsupportedError(
        {{{},
          {},
          std::to_string(chunks.size()) + " chunks are too many to simulate operation by operation",
          "use a smaller virtual_pipeline, or --detail pass"}});
  std::vector<Work> rows(places.num_rows());
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    for (const Direction direction : directions) {
      const PassOperations& pass = chunks[chunk]->at(direction);
      for (const PlacedOperation& placed : place_operations(pass).operations)
        rows[places.row(static_cast<int>(chunk), direction, placed)] = work_of(pass, placed);
    }
  }
  return rows;
}

Work work_of(Seconds duration, Part part) {
  Work work;
  work.duration = duration;
  work.parts[part] = duration;
  return work;
}

std::vector<Work> work_table(const StageCost& cost, const Plan& plan, int buckets) {
  const bool splits = plan.parallel.schedule->splits_backward;
  std::vector<Work> rows;
  for (const ChunkCost& chunk : cost.chunks) {
    for (const PassCost* pass :
         {&chunk.forward, &chunk.backward, &chunk.input_gradient, &chunk.weight_gradient})
      rows.push_back(work_of(*pass));
    rows.push_back(piece_of(work_of(splits ? chunk.weight_gradient : chunk.backward), buckets));
    for (const PassCost* pass : {&chunk.overlapped_forward, &chunk.overlapped_input_gradient,
                                 &chunk.overlapped_weight_gradient})
      rows.push_back(work_of(*pass));
    rows.emplace_back();  // reduction_slowdown
  }
  rows.resize(rows.size() + num_kernel_rows);
  for (const Operation& operation : cost.end) {
    const LabelRow& label = row_of(operation.label);
    if (is_collective(label.kind)) continue;
    rows[row_of(end_place(operation.label).row, static_cast<int>(cost.chunks.size()))] =
        work_of(operation.time, label.part);
  }
  return rows;
}

namespace {

/// Fullness that the layers of a pass meet.
FullnessOf by_layer(const std::vector<double>& fullness) {
  return [&fullness](const PlacedOperation& operation) {
    return operation.layer == 0 ? 1 : fullness[operation.layer - 1U];
  };
}

/// Work of a pass under one draw of tokens, with the wait for launches of this draw instead of the mean draw's.
Work work_of_draw(const PassOperations& pass, const PassTimes& times, LaunchFloor floor) {
  Work work = work_of(times);
  Seconds& host = work.parts[Part::other];
  const Seconds busy = work.duration - host;
  const Seconds longer =
      with_launch_floor(busy, floor) - busy - pass.after.back().time;  // the last is the wait
  host += longer;
  work.duration += longer;
  work.floor = floor;
  return work;
}

}  // namespace

std::size_t chunk_of(const Operation& operation, std::size_t ahead) {
  const bool is_other = operation.of != PassOfBlock::only && operation.of != PassOfBlock::forward;
  return is_other ? 1 - ahead : ahead;  // a block has passes of both chunks
}

void DrawnRowWriter::write(const PlanDevice& device, const StageCost& cost,
                           std::uint32_t work_base) {
  work_base_ = work_base;
  set_.drawn_rows.microbatches = microbatches();
  const std::vector<Fullness> fullness = fullness_of(device);
  write_passes(device.stage, cost, fullness);
  if (overlaps_passes(plan_)) write_blocks(device.stage, cost, fullness);
  if (by_operation_) write_operations(cost, fullness);
}

std::vector<DrawnRowWriter::Fullness> DrawnRowWriter::fullness_of(const PlanDevice& device) const {
  std::vector<Fullness> chunks;
  for (int chunk = 0; chunk < plan_.parallel.virtual_pipeline; ++chunk)
    chunks.push_back(draws_.of_chunk(plan_, device, chunk));
  return chunks;
}

std::uint32_t DrawnRowWriter::add_rows(std::uint16_t row, std::size_t layers) {
  std::vector<std::uint32_t>& first = set_.drawn_rows.first;
  const std::uint32_t of_mean = work_base_ + row;
  if (first.size() <= of_mean) first.resize(of_mean + 1U);
  if (first[of_mean] == 0) {
    first[of_mean] = static_cast<std::uint32_t>(set_.work.size());
    const Work usual = set_.work[of_mean];
    set_.work.resize(set_.work.size() + layers * microbatches(), usual);
  }
  return first[of_mean];
}

void DrawnRowWriter::write_passes(StageId stage, const StageCost& cost,
                                  const std::vector<Fullness>& fullness) {
  const bool splits = plan_.parallel.schedule->splits_backward;
  const Direction makes_gradients = splits ? Direction::weight_gradient : Direction::backward;
  const int buckets = gradient_buckets(plan_, stage);
  for (std::size_t chunk = 0; chunk < cost.chunks.size(); ++chunk)
    for (const Direction direction : directions_of(splits)) {
      if (direction == Direction::overlapped) continue;
      const PassOperations& pass = cost.chunks[chunk].operations->at(direction);
      const PlacedPass placed = place_operations(pass);
      const int number = static_cast<int>(chunk);
      const std::uint32_t first = add_rows(row_of(row_of_pass(direction), number), 1);
      const bool has_pieces = direction == makes_gradients;
      const std::uint32_t first_piece =
          has_pieces ? add_rows(row_of(ChunkRow::last_piece, number), 1) : 0;
      for (std::size_t m = 0; m < microbatches(); ++m) {
        const Work work =
            work_of_draw(pass, times_alone(pass, placed, by_layer(fullness[chunk][m])), pass.floor);
        set_.work[first + m] = work;
        if (has_pieces) set_.work[first_piece + m] = piece_of(work, buckets);
      }
    }
}

void DrawnRowWriter::write_blocks(StageId stage, const StageCost& cost,
                                  const std::vector<Fullness>& fullness) {
  WT_EXPECT(cost.chunks.size() == 2);
  const auto write = [&](std::size_t ahead, std::size_t forward, std::size_t backward) {
    const std::size_t back = 1 - ahead;
    const PassOperations& block = cost.chunks[ahead].operations->at(Direction::overlapped);
    const auto times =
        times_of_block(block, placed_blocks_[ahead], [&](const PlacedOperation& operation) {
          const std::size_t chunk = chunk_of(block[operation.number], ahead);
          const std::size_t microbatch = chunk == ahead ? forward : backward;
          return operation.layer == 0 ? 1 : fullness[chunk][microbatch][operation.layer - 1U];
        });
    const auto set = [&](ChunkRow row, std::size_t chunk, std::size_t microbatch,
                         const Work& work) {
      const std::uint32_t first = add_rows(row_of(row, static_cast<int>(chunk)), 1);
      set_.work[first + microbatch] = work;
    };
    const Work inputs = work_of(times[PassOfBlock::input_gradient]),
               weights = work_of(times[PassOfBlock::weight_gradient]);
    LaunchFloor floor = block.floor;
    for (const Work* other : {&inputs, &weights}) {
      floor.elsewhere += other->duration;
      for (const Part part : {Part::compute, Part::codec})
        floor.kernels_elsewhere += other->parts[part];
    }
    set(ChunkRow::overlapped_forward, ahead, forward,
        work_of_draw(block, times[PassOfBlock::forward], floor));
    set(ChunkRow::overlapped_input_gradient, back, backward, inputs);
    set(ChunkRow::overlapped_weight_gradient, back, backward, weights);
  };
  for (std::size_t ahead = 0; ahead < cost.chunks.size(); ++ahead) {
    placed_blocks_[ahead] =
        place_operations(cost.chunks[ahead].operations->at(Direction::overlapped));
    for (std::size_t m = 0; m < microbatches(); ++m)
      write(ahead, m, m);  // those that meet no other
  }
  const std::vector<Step> order = schedule_order(plan_, stage);
  for (std::size_t first = 0, end = 0; first < order.size(); first = end) {
    end = end_of_block(order, first);
    const Step &forward = order[first], &backward = order[end - 1];
    if (forward.phase == Phase::forward && end > first + 1)
      write(forward.chunk, forward.microbatch, backward.microbatch);
  }
}

void DrawnRowWriter::write_operations(const StageCost& cost,
                                      const std::vector<Fullness>& fullness) {
  const StageOperations chunks = operations_of(cost);
  const auto directions = directions_of(plan_.parallel.schedule->splits_backward);
  const OperationPlaces places(chunks, directions);
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk)
    for (const Direction direction : directions) {
      const PassOperations& pass = chunks[chunk]->at(direction);
      for (const PlacedOperation& placed : place_operations(pass).operations) {
        const Operation& operation = pass[placed.number];
        if (!varies(operation) ||
            is_simulated_on_network(operation.label, plan_.nodes_per_tensor_group > 1))
          continue;
        const Fullness& of_chunk = fullness[chunk_of(operation, chunk)];
        const std::uint32_t first = add_rows(places.row(static_cast<int>(chunk), direction, placed),
                                             of_chunk.front().size());
        for (std::uint32_t m = 0; m < microbatches(); ++m)
          set_.work[first + set_.drawn_rows.place(placed.layer, m)] =
              work_of(pass, placed, of_chunk[m][placed.layer - 1U]);
      }
    }
}

}  // namespace windtunnel
