#include "scenario/program_builder.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/contracts.hpp"
#include "scenario/codec_plan.hpp"
#include "scenario/collective_builder.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {
namespace {

class ProgramBuilder {
 public:
  explicit ProgramBuilder(const BuildInputs& in)
      : in_(in),
        plan_(*in.plan),
        codecs_(*in.model, *in.plan, *in.software),
        built_{{}, Network(*in.platform), {}},
        collectives_(in_, built_.network) {}

  BuiltPrograms build() {
    add_stage_programs();
    for (std::size_t i = 0; i < plan_.devices.size(); ++i) add_device(DeviceId{i});
    add_message_sizes();
    add_gradient_reductions();
    add_embedding_syncs();
    add_tensor_collectives();
    return std::move(built_);
  }

 private:
  ProgramSet& set() { return built_.programs; }
  const PlanDevice& device(DeviceId id) const { return plan_.devices[id.index()]; }
  const NodeType& node_type(NodeId node) const { return (*in_.nodes)[node.index()]; }
  const StageCost& cost(DeviceId id) const { return built_.cost_of_device[id.index()]; }
  bool ties_embeddings() const { return in_.model->tied_embeddings && plan_.parallel.pipeline > 1; }

  Network::Endpoint endpoint(DeviceId id) const { return {device(id).node, device(id).gpus}; }

  PipelineShape pipeline_shape() const {
    PipelineShape shape;
    shape.send = plan_.parallel.pipeline_send;
    shape.stages = plan_.parallel.pipeline;
    shape.microbatches = plan_.microbatches;
    shape.chunks = plan_.parallel.virtual_pipeline;
    shape.gradient_reduce = reduces_gradients() && !overlaps_gradients();
    shape.parameter_gather = plan_.parallel.data > 1 &&
                             (plan_.parallel.zero_stage == 1 || plan_.parallel.zero_stage == 2);
    shape.embedding_sync = ties_embeddings();
    if (plan_.parts > 1) {
      shape.tensor = in_.software->overlap_backward_tensor_collectives
                         ? TensorCollectives::overlapped
                         : TensorCollectives::exposed;
    }
    return shape;
  }

  /// ZeRO 3 scatters its gradients inside each backward pass.
  bool reduces_gradients() const {
    return plan_.parallel.data > 1 && plan_.parallel.zero_stage < 3;
  }
  bool overlaps_gradients() const {
    return reduces_gradients() && plan_.parallel.overlap_gradient_reduce;
  }

  /// ZeRO 3: every pass gathers its layers' parameters over the replicas.
  bool gathers_layers() const { return plan_.parallel.data > 1 && plan_.parallel.zero_stage == 3; }

  /// Gradient buckets of a stage's chunk: one a layer, at least one.
  int buckets(StageId stage) const { return std::max(1, plan_.chunk_layers(stage)); }

  void add_stage_programs() {
    for (int s = 0; s < plan_.parallel.pipeline; ++s) {
      const StageId stage{s};
      PipelineShape shape = pipeline_shape();
      shape.compressed = codecs_.traffic_of(stage);
      if (overlaps_gradients())
        shape.gradient_buckets.assign(static_cast<std::size_t>(shape.chunks), buckets(stage));
      set().programs.push_back(make_pipeline_program(shape, schedule_order(plan_, stage), stage));
    }
  }

  /// Stages that hold the same layers and role on the same kind of node, on the same GPUs, cost the same.
  using CostKey =
      std::tuple<int, bool, bool, const NodeType*, int, std::vector<int>, int, std::vector<int>>;

  const StageCost& stage_cost_of(const PlanDevice& d) {
    const NodeType& node = node_type(d.node);
    const bool position_matters = node.interconnect.kind == Interconnect::Kind::mesh;
    const DataGroup gathered_over = gathers_layers() ? data_group(d) : DataGroup{};
    const CostKey key{plan_.stage_layers[d.stage.index()],
                      plan_.is_first(d.stage),
                      plan_.is_last(d.stage),
                      &in_.platform->type_of(d.node),
                      d.num_gpus(),
                      position_matters ? d.gpus : std::vector<int>{},
                      gathered_over.nodes,
                      position_matters ? gathered_over.gpus_in_node : std::vector<int>{}};
    const auto [found, is_new] = cost_by_key_.try_emplace(key);
    if (is_new) {
      found->second.cost = stage_cost({in_.model, in_.plan, in_.software, &node,
                                       &in_.platform->fabric, d.stage, d.gpus, gathered_over});
      found->second.work_base = static_cast<std::uint32_t>(set().work.size());
      add_work_table(found->second.cost, d.stage);
      for (const Work& row : codecs_.rows(node.device)) set().work.push_back(row);
    }
    last_work_base_ = found->second.work_base;
    return found->second.cost;
  }

  /// The replicas of this device's stage and part, as its first rank sees them.
  DataGroup data_group(const PlanDevice& d) const {
    DataGroup group;
    group.members = plan_.parallel.data;
    std::map<NodeId, std::vector<int>> members_by_node;
    for (int replica = 0; replica < group.members; ++replica) {
      const PlanDevice& member = device(plan_.device(replica, d.stage, d.part));
      members_by_node[member.node].push_back(member.gpus.front());
    }
    group.nodes = static_cast<int>(members_by_node.size());
    for (const auto& [node, gpus] : members_by_node)
      if (gpus.size() > group.gpus_in_node.size()) group.gpus_in_node = gpus;
    return group;
  }

  static Work work_of(const PassCost& pass) {
    Work work;
    work.duration = pass.duration;
    work.parts[static_cast<std::size_t>(Part::compute)] = pass.compute;
    work.parts[static_cast<std::size_t>(Part::tensor_comm)] = pass.tensor_comm;
    work.parts[static_cast<std::size_t>(Part::data_comm)] = pass.data_comm;
    work.parts[static_cast<std::size_t>(Part::other)] = pass.floor_share();
    return work;
  }
  static Work work_of(Seconds duration, Part part) {
    Work work;
    work.duration = duration;
    work.parts[static_cast<std::size_t>(part)] = duration;
    return work;
  }
  static Work piece_of(Work work, int pieces) {
    work.duration = work.duration / static_cast<double>(pieces);
    for (Seconds& part : work.parts) part = part / static_cast<double>(pieces);
    return work;
  }

  /// The backward pass cut in two: what runs before the overlapped collectives, and what runs beside them.
  static std::pair<Work, Work> split_backward(const ChunkCost& cost) {
    const Seconds beside = std::min(cost.backward_cross.hidden_behind, cost.backward.compute);
    PassCost before = cost.backward;
    before.compute -= beside;
    before.duration -= beside;
    return {work_of(before), work_of(beside, Part::compute)};
  }

  /// In the order of ChunkRow and DeviceRow.
  void add_work_table(const StageCost& cost, StageId stage) {
    const bool splits = splits_backward(plan_);
    for (const ChunkCost& chunk : cost.chunks) {
      const auto [before, beside] = split_backward(chunk);
      set().work.push_back(work_of(chunk.forward));
      set().work.push_back(before);
      set().work.push_back(beside);
      set().work.push_back(work_of(chunk.input_gradient));
      set().work.push_back(work_of(chunk.weight_gradient));
      set().work.push_back(
          piece_of(work_of(splits ? chunk.weight_gradient : chunk.backward), buckets(stage)));
    }
    set().work.push_back(work_of(cost.optimizer, Part::optimizer));
    set().work.push_back(work_of(in_.software->iteration_overhead, Part::other));
  }

  void add_device(DeviceId id) {
    const PlanDevice& d = device(id);
    ProgramDevice entry;
    entry.program = d.stage.index();
    built_.cost_of_device.push_back(stage_cost_of(d));
    entry.work_base = last_work_base_;
    for (const StageId target : set().programs[d.stage.index()].targets)
      entry.channels.push_back(add_channel(id, plan_.device(d.replica, target, d.part)));
    entry.collectives.assign(num_collective_slots(plan_.parallel.virtual_pipeline), no_collective);
    set().devices.push_back(std::move(entry));
  }

  /// Bytes of one device's share of a message: each of its ranks sends its own.
  void add_message_sizes() {
    const PlanDevice& first = plan_.devices.front();
    for (const Bytes size : codecs_.message_sizes(node_type(first.node).device))
      set().message_bytes.push_back(size * static_cast<double>(first.num_gpus()));
  }

  ChannelId add_channel(DeviceId from, DeviceId to) {
    Channel channel;
    channel.from = from;
    channel.to = to;
    channel.in_node = device(from).node == device(to).node;
    if (channel.in_node) {
      const Interconnect& wires = node_type(device(from).node).interconnect;
      channel.bandwidth = wires.point_to_point * static_cast<double>(device(from).num_gpus());
      channel.latency = wires.point_to_point_latency;
    } else {
      const Route route = built_.network.route(endpoint(from), endpoint(to));
      channel.up = route.up;
      channel.down = route.down;
      channel.latency = route.latency;
    }
    set().channels.push_back(channel);
    return ChannelId{set().channels.size() - 1};
  }

  void add_collective(Collective collective, std::uint32_t slot) {
    const CollectiveId id{set().collectives.size()};
    for (const DeviceId member : collective.members)
      set().devices[member.index()].collectives[slot] = id;
    set().collectives.push_back(std::move(collective));
  }

  void add_gradient_reductions() {
    if (!reduces_gradients()) return;
    for (int s = 0; s < plan_.parallel.pipeline; ++s) {
      for (int part = 0; part < plan_.parts; ++part) {
        std::vector<DeviceId> members;
        for (int d = 0; d < plan_.parallel.data; ++d)
          members.push_back(plan_.device(d, StageId{s}, part));
        add_data_collectives(members, StageId{s});
      }
    }
  }

  /// The gradients of one stage's replicas: all-reduced, or scattered with the parameters gathered after the step (ZeRO 1 and 2).
  void add_data_collectives(const std::vector<DeviceId>& members, StageId stage) {
    const StageCost& c = cost(members.front());
    const bool sharded = plan_.parallel.zero_stage > 0;
    const auto reduction = [&](Bytes payload) {
      return collectives_.gradient_ring(
          members, payload, sharded ? RingWork::scatter_or_gather : RingWork::all_reduce);
    };
    if (overlaps_gradients()) {
      for (int chunk = 0; chunk < plan_.parallel.virtual_pipeline; ++chunk) {
        const Bytes gradients = c.chunks[static_cast<std::size_t>(chunk)].gradients;
        add_collective(reduction(gradients / static_cast<double>(buckets(stage))),
                       slot_of(ChunkCollective::bucket, chunk));
      }
    } else {
      add_collective(reduction(c.gradients), slot_of(CollectiveSlot::gradient_reduce));
    }
    if (sharded)
      add_collective(collectives_.gradient_ring(members, c.parameters, RingWork::scatter_or_gather),
                     slot_of(CollectiveSlot::parameter_gather));
  }

  void add_embedding_syncs() {
    if (!ties_embeddings()) return;
    const StageId first{0}, last{plan_.parallel.pipeline - 1};
    for (int d = 0; d < plan_.parallel.data; ++d) {
      for (int part = 0; part < plan_.parts; ++part) {
        const std::vector<DeviceId> members{plan_.device(d, first, part),
                                            plan_.device(d, last, part)};
        add_collective(collectives_.flat(members, cost(members.front()).embedding_gradients,
                                         RingWork::all_reduce),
                       slot_of(CollectiveSlot::embedding_sync));
      }
    }
  }

  void add_tensor_collectives() {
    if (plan_.parts == 1) return;
    for (int d = 0; d < plan_.parallel.data; ++d) {
      for (int s = 0; s < plan_.parallel.pipeline; ++s) {
        std::vector<DeviceId> members;
        for (int part = 0; part < plan_.parts; ++part)
          members.push_back(plan_.device(d, StageId{s}, part));
        const StageCost& c = cost(members.front());
        for (int chunk = 0; chunk < plan_.parallel.virtual_pipeline; ++chunk) {
          const ChunkCost& k = c.chunks[static_cast<std::size_t>(chunk)];
          add_collective(
              collectives_.tensor_ring(members, c.tensor_payload, k.forward_cross.exposed),
              slot_of(ChunkCollective::forward, chunk));
          add_collective(
              collectives_.tensor_ring(members, c.tensor_payload, k.backward_cross.exposed),
              slot_of(ChunkCollective::exposed, chunk));
          add_collective(
              collectives_.tensor_ring(members, c.tensor_payload, k.backward_cross.overlappable),
              slot_of(ChunkCollective::backward, chunk));
        }
      }
    }
  }

  struct CostEntry {
    StageCost cost;
    std::uint32_t work_base = 0;
  };

  const BuildInputs in_;
  const Plan& plan_;
  const CodecPlan codecs_;
  BuiltPrograms built_;
  const CollectiveBuilder collectives_;
  std::map<CostKey, CostEntry> cost_by_key_;
  std::uint32_t last_work_base_ = 0;
};

}  // namespace

BuiltPrograms build_programs(const BuildInputs& inputs) { return ProgramBuilder(inputs).build(); }

}  // namespace windtunnel
