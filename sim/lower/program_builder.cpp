#include "lower/program_builder.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "core/contracts.hpp"
#include "core/memory_left.hpp"
#include "core/work_note.hpp"
#include "cost/codec_shapes.hpp"
#include "cost/end_of_iteration.hpp"
#include "lower/codec_plan.hpp"
#include "lower/collective_builder.hpp"
#include "lower/device_routes.hpp"
#include "lower/stage_choice.hpp"
#include "lower/stage_cost_table.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {
namespace {

class ProgramBuilder {
 public:
  explicit ProgramBuilder(const BuildInputs& in)
      : in_(in),
        plan_(*in.plan),
        codecs_(*in.model, *in.plan, *in.software),
        built_{{}, Network(*in.platform, in.plan->num_nodes), {}, {}, false, {}},
        routes_(plan_, built_.network),
        collectives_(in_, routes_),
        costs_(in_, codecs_, built_.network, built_.programs.work),
        expert_load_(in.model->moe ? expert_load(*in.model->moe, in.plan->parallel.expert).slowest
                                   : 1) {}

  BuiltPrograms build() {
    const Doing building("building the programs");
    expect_memory();
    add_stage_programs();
    for (std::size_t i = 0; i < plan_.devices.size(); ++i) add_device(DeviceId{i});
    add_message_sizes();
    add_operation_collectives();
    add_gradient_reductions();
    add_expert_reductions();
    add_embedding_syncs();
    add_tensor_collectives();
    return std::move(built_);
  }

 private:
  /// The programs themselves, and the state in which they are played.
  void expect_memory() {
    // Resident memory of two runs, 1,024 and 4,096 microbatches of gpt-39b-512xa100: by layer, 79 to 102 B an operation.
    constexpr double bytes_of_pass = 170, bytes_of_operation = 90;
    double events = bytes_of_pass;
    if (plays_operations(in_)) {
      const ChunkOperations& chunk =
          *costs_.of(plan_.devices.front()).cost->chunks.front().operations;
      for (const Direction direction : directions()) {
        const PassOperations& pass = chunk.at(direction);
        events += bytes_of_operation * static_cast<double>(pass.size()) * pass.layers;
      }
    }
    const double passes = static_cast<double>(plan_.microbatches) * plan_.parallel.pipeline *
                          plan_.parallel.virtual_pipeline;
    expect_memory_for(
        events * passes,
        "a pipeline of " + std::to_string(static_cast<std::int64_t>(passes)) + " passes",
        "use a smaller global_batch, or a larger micro_batch or data");
  }

  ProgramSet& set() { return built_.programs; }
  const PlanDevice& device(DeviceId id) const { return plan_.devices[id.index()]; }
  const NodeType& node_type(NodeId node) const { return (*in_.nodes)[node.index()]; }
  const StageCost& cost(DeviceId id) const { return built_.cost_of_device[id.index()]; }
  bool ties_embeddings() const { return synchronises_embedding(*in_.model, plan_); }

  PipelineShape pipeline_shape() const {
    PipelineShape shape;
    shape.send = plan_.parallel.pipeline_send;
    shape.stages = plan_.parallel.pipeline;
    shape.microbatches = plan_.microbatches;
    shape.chunks = plan_.parallel.virtual_pipeline;
    shape.chunk_path = plan_.parallel.schedule->chunk_path;
    shape.gradient_reduction = gradient_reduction(plan_);
    shape.overlaps_passes = overlaps_passes(plan_);
    if (plan_.nodes_per_tensor_group > 1) {
      shape.tensor = in_.software->overlap_backward_tensor_collectives
                         ? TensorCollectives::overlapped
                         : TensorCollectives::exposed;
    }
    return shape;
  }

  bool reduces_gradients() const { return gradient_reduction(plan_) != GradientReduction::none; }

  void add_stage_programs() {
    for (int s = 0; s < plan_.parallel.pipeline; ++s) {
      const StageId stage{s};
      PipelineShape shape = pipeline_shape();
      const StageCost& cost = *costs_.of(device(plan_.device(0, stage, 0))).cost;
      shape.compressed = codecs_.traffic_of(stage, cost);
      shape.end = cost.end;
      if (plays_operations(in_)) shape.operations = operations_of(cost);
      if (reduces_gradients() && plan_.parallel.overlap_gradient_reduce)
        shape.gradient_buckets.assign(static_cast<std::size_t>(shape.chunks),
                                      codecs_.buckets(stage));
      set().programs.push_back(make_pipeline_program(shape, schedule_order(plan_, stage), stage));
    }
  }

  std::vector<Direction> directions() const {
    return directions_of(plan_.parallel.schedule->splits_backward);
  }

  void add_device(DeviceId id) {
    const PlanDevice& d = device(id);
    ProgramDevice entry;
    entry.program = d.stage.index();
    const StageCostTable::Entry& costs = costs_.of(d);
    built_.cost_of_device.add(costs.cost);
    entry.work_base = costs.work_base;
    for (const StageId target : set().programs[d.stage.index()].targets)
      entry.channels.push_back(add_channel(id, plan_.device(d.replica, target, d.group_node)));
    entry.collectives.assign(set().programs[entry.program].num_collectives, no_collective);
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
      const Route route = routes_.between(from, to);
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

  /// The same stage and part in all replicas.
  std::vector<DeviceId> replicas_of(StageId stage, int part) const {
    std::vector<DeviceId> members;
    for (int replica = 0; replica < plan_.parallel.replicas(); ++replica)
      members.push_back(plan_.device(replica, stage, part));
    return members;
  }

  /// The same part of all stages that hold the parameters of `stage`, in all replicas.
  std::vector<DeviceId> holders_of(StageId stage, int part) const {
    std::vector<DeviceId> members;
    for (const StageId holder : plan_.chunk_map().holders(stage))
      for (const DeviceId member : replicas_of(holder, part)) members.push_back(member);
    return members;
  }
  bool is_first_holder(StageId stage) const {
    return plan_.chunk_map().holders(stage).front() == stage;
  }

  /// The nodes' parts of a tensor group.
  std::vector<DeviceId> parts_of(int replica, StageId stage) const {
    std::vector<DeviceId> members;
    for (int part = 0; part < plan_.nodes_per_tensor_group; ++part)
      members.push_back(plan_.device(replica, stage, part));
    return members;
  }

  void add_operation_collectives() {
    if (!plays_operations(in_)) return;
    for (int s = 0; s < plan_.parallel.pipeline; ++s) {
      for (int part = 0; part < plan_.nodes_per_tensor_group; ++part)
        for (const GroupKind kind : {GroupKind::sharding, GroupKind::copies, GroupKind::context})
          for (int replica = 0; replica < plan_.parallel.replicas(); ++replica)
            if (replicas_with(plan_.parallel, replica, kind).front() == replica)
              add_operation_collectives(group_of(replica, kind, StageId{s}, part), kind);
      for (int replica = 0; plan_.nodes_per_tensor_group > 1 && replica < plan_.parallel.replicas();
           ++replica)
        add_operation_collectives(parts_of(replica, StageId{s}), GroupKind::tensor);
      add_exchanges(StageId{s});
    }
  }

  /// Of each group of replicas that exchange tokens.
  void add_exchanges(StageId stage) {
    const int together = windtunnel::replicas_of_experts(plan_.parallel);
    if (plan_.parallel.expert == 1) return;
    for (int replica = 0; replica < plan_.parallel.replicas(); replica += together) {
      std::vector<DeviceId> members;
      for (const int other : windtunnel::replicas_of_experts(plan_.parallel, replica))
        for (const DeviceId part : parts_of(other, stage)) members.push_back(part);
      add_operation_collectives(members, GroupKind::experts);
    }
  }

  /// Of one rank, as the cost of its stage has them; alone: a layer that has experts.
  Collective exchange(const std::vector<DeviceId>& members, const Operation& operation) const {
    const PlanDevice& first = device(members.front());
    const ExpertGroup group = costs_.expert_group(first);
    const ExpertDispatch dispatch =
        in_.software->experts_on(in_.platform->type_of(first.node).device, plan_.training.precision)
            .dispatch;
    const TokenCopies copies = token_copies(*in_.model->moe, group, dispatch);
    const Bytes payload = operation.payload * (expert_load_ / operation.share);
    return collectives_.exchange(members, operation,
                                 exchange_bytes(payload, copies, group, dispatch), group);
  }

  /// The gradients of experts, among the devices that hold the same ones.
  void add_expert_reductions() {
    const Operation* const scattered = find_in_end(Label::scatter_expert_gradients);
    const Operation* const reduced = find_in_end(Label::reduce_expert_gradients);
    if (scattered == nullptr && reduced == nullptr) return;
    const int together = windtunnel::replicas_of_experts(plan_.parallel);
    for (int s = 0; s < plan_.parallel.pipeline; ++s)
      for (int part = 0; is_first_holder(StageId{s}) && part < plan_.nodes_per_tensor_group; ++part)
        for (int replica = 0; replica < together; ++replica) {
          std::vector<DeviceId> members;
          for (const StageId holder : plan_.chunk_map().holders(StageId{s}))
            for (const int other : replicas_of_same_experts(plan_.parallel, replica))
              members.push_back(plan_.device(other, holder, part));
          add_expert_reductions(members);
        }
  }

  const Operation* find_in_end(Label label) const {
    for (int s = 0; s < plan_.parallel.pipeline; ++s)
      if (const Operation* found = find(cost(plan_.device(0, StageId{s}, 0)).end, label))
        return found;
    return nullptr;
  }

  void add_expert_reductions(const std::vector<DeviceId>& members) {
    for (const Operation& operation : cost(members.front()).end) {
      if (windtunnel::group_of(operation.label) != GroupKind::expert_data) continue;
      const RingWork work = row_of(operation.label).kind == OperationKind::all_reduce
                                ? RingWork::all_reduce
                                : RingWork::scatter_or_gather;
      add_collective(collectives_.gradients(members, operation.payload, work),
                     slot_of(end_place(operation.label).slot));
    }
  }

  std::vector<DeviceId> group_of(int replica, GroupKind kind, StageId stage, int part) const {
    std::vector<DeviceId> members;
    for (const int other : replicas_with(plan_.parallel, replica, kind))
      members.push_back(plan_.device(other, stage, part));
    return members;
  }

  /// Those of all passes that run over a group of this kind, which is `members`.
  void add_operation_collectives(const std::vector<DeviceId>& members, GroupKind kind) {
    const StageOperations chunks = operations_of(cost(members.front()));
    const OperationPlaces places(chunks, directions());
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      for (const Direction direction : directions()) {
        const PassOperations& pass = chunks[chunk]->at(direction);
        for (std::size_t number = 0; number < pass.size(); ++number) {
          const Label label = pass[number].label;
          if (windtunnel::group_of(label) == kind &&
              is_played_on_network(label, plan_.nodes_per_tensor_group > 1))
            add_collective(operation_collective(members, pass[number]),
                           places.slot(static_cast<int>(chunk), direction, number));
        }
      }
    }
  }

  Collective operation_collective(const std::vector<DeviceId>& members,
                                  const Operation& operation) const {
    if (windtunnel::group_of(operation.label) == GroupKind::experts)
      return exchange(members, operation);
    if (!is_of_tensor_group(operation.label))
      return collectives_.sharded_ring(members, operation.payload,
                                       row_of(operation.label).kind == OperationKind::all_reduce
                                           ? RingWork::all_reduce
                                           : RingWork::scatter_or_gather);
    constexpr double half = 0.5;
    return collectives_.tensor_ring(
        members, operation.payload / operation.share,
        (operation.label == Label::reduce_activation ? 1 : half) * operation.share);
  }

  void add_gradient_reductions() {
    if (!reduces_gradients()) return;
    for (int s = 0; s < plan_.parallel.pipeline; ++s) {
      for (int part = 0; is_first_holder(StageId{s}) && part < plan_.nodes_per_tensor_group; ++part)
        add_data_collectives(holders_of(StageId{s}, part));
    }
  }

  /// The gradients that these devices have copies of: all-reduced, or scattered with the parameters gathered after the step (ZeRO 1 and 2).
  void add_data_collectives(const std::vector<DeviceId>& members) {
    const CodecStage codec = costs_.codec_stage(device(members.front()), cost(members.front()));
    const bool two_parts = codecs_.reduces_in_two_parts(codec);
    if (reduces_by_chunk(plan_)) {
      for (int chunk = 0; chunk < plan_.parallel.virtual_pipeline; ++chunk)
        add_reduction(members, codecs_.reduced_bucket(codec, chunk), two_parts,
                      slot_of(ChunkCollective::bucket, chunk),
                      slot_of(ChunkCollective::bucket_second, chunk));
    } else {
      add_reduction(members, codecs_.reduced_gradients(codec), two_parts,
                    slot_of(CollectiveSlot::gradient_reduce),
                    slot_of(CollectiveSlot::gradient_reduce_second));
    }
    if (find(codec.cost->end, Label::gather_parameters) != nullptr)
      add_collective(collectives_.gradients(members, codecs_.gathered_parameters(codec).payload,
                                            RingWork::scatter_or_gather),
                     slot_of(CollectiveSlot::parameter_gather));
  }

  /// A codec in two parts all-reduces both, so that every replica has all gradients and keeps its shard.
  void add_reduction(const std::vector<DeviceId>& members, const EncodedCollective& encoded,
                     bool two_parts, std::uint32_t slot, std::uint32_t second_slot) {
    const RingWork work = plan_.parallel.zero_stage > 0 && !two_parts ? RingWork::scatter_or_gather
                                                                      : RingWork::all_reduce;
    add_collective(collectives_.gradients(members, encoded.payload, work), slot);
    if (two_parts)
      add_collective(collectives_.gradients(members, encoded.second_payload, work), second_slot);
  }

  void add_embedding_syncs() {
    if (!ties_embeddings()) return;
    const StageId first = plan_.chunk_map().first().stage, last = plan_.chunk_map().last().stage;
    // One group for each replica's two edge stages, or one fused group for all replicas.
    std::vector<std::vector<DeviceId>> fused(
        static_cast<std::size_t>(plan_.nodes_per_tensor_group));
    for (int d = 0; d < plan_.parallel.replicas(); ++d) {
      for (int part = 0; part < plan_.nodes_per_tensor_group; ++part) {
        const std::vector<DeviceId> edges{plan_.device(d, first, part),
                                          plan_.device(d, last, part)};
        auto& group = fused[static_cast<std::size_t>(part)];
        group.insert(group.end(), edges.begin(), edges.end());
        if (!fuses_embedding_sync(*in_.model, plan_)) add_embedding_sync(edges);
      }
    }
    if (fuses_embedding_sync(*in_.model, plan_))
      for (const std::vector<DeviceId>& members : fused) add_embedding_sync(members);
  }

  void add_embedding_sync(const std::vector<DeviceId>& members) {
    const Operation* const sync = find(cost(members.front()).end, Label::synchronise_embedding);
    WT_EXPECT(sync != nullptr);
    add_collective(collectives_.flat(members, sync->payload, RingWork::all_reduce),
                   slot_of(end_place(sync->label).slot));
  }

  void add_tensor_collectives() {
    if (plan_.nodes_per_tensor_group == 1) return;
    for (int d = 0; d < plan_.parallel.replicas(); ++d) {
      for (int s = 0; s < plan_.parallel.pipeline; ++s) {
        const std::vector<DeviceId> members = parts_of(d, StageId{s});
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

  const BuildInputs in_;
  const Plan& plan_;
  const CodecPlan codecs_;
  BuiltPrograms built_;
  const DeviceRoutes routes_;
  const CollectiveBuilder collectives_;
  StageCostTable costs_;
  const double expert_load_;  ///< tokens of the fullest rank over the mean
};

/// Whether a node's NICs serve each of its devices alike; otherwise the device with the fewest decides, and not the node's rate.
bool shares_nics_evenly(const NodeType& node, const Plan& plan) {
  const int devices = std::max(1, node.gpus / plan.parallel.tensor);
  return node.nics == 0 || devices % node.nics == 0 || node.nics % devices == 0;
}

/// Whether tokens of experts leave nodes.
bool exchanges_across_nodes(const Plan& plan) {
  if (plan.parallel.expert == 1) return false;
  for (const PlanDevice& device : plan.devices)
    for (const int other : windtunnel::replicas_of_experts(plan.parallel, device.replica)) {
      const DeviceId member = plan.device(other, device.stage, device.group_node);
      if (plan.devices[member.index()].node != device.node) return true;
    }
  return plan.nodes_per_tensor_group > 1;
}

}  // namespace

bool plays_operations(const BuildInputs& inputs) {
  const Plan& plan = *inputs.plan;
  if (inputs.detail == Detail::layer) return true;
  if (exchanges_across_nodes(plan) && (!unevenness(*inputs.platform, plan.num_nodes).empty() ||
                                       !shares_nics_evenly(inputs.nodes->front(), plan)))
    return true;
  const bool gathers = plan.parallel.zero_stage == 3 && plan.parallel.replicas() > 1;
  if (!gathers && plan.parallel.context == 1) return false;
  return plan.nodes_per_tensor_group > 1 || !unevenness(*inputs.platform, plan.num_nodes).empty() ||
         (plan.num_nodes > 1 && !shares_nics_evenly(inputs.nodes->front(), plan));
}

BuiltPrograms build_programs(const BuildInputs& inputs) {
  Plan plan = *inputs.plan;
  plan.compression = with_stages_chosen(inputs);
  BuildInputs chosen = inputs;
  chosen.plan = &plan;
  BuiltPrograms built = ProgramBuilder(chosen).build();
  built.compression = plan.compression;
  built.plays_operations = plays_operations(chosen);
  if (inputs.replicas == Replicas::collapsed_when_exact)
    built.collapsed = collapse(built.programs, built.network);
  return built;
}

Played play(const BuiltPrograms& built, EngineKind kind, PlayListener* listener) {
  const Doing simulating("simulating", "activities");
  const std::unique_ptr<Engine> engine = make_engine(kind, built.network_to_play());
  if (!built.collapsed) return play(built.programs, *engine, listener);
  try {
    return play(*built.collapsed, *engine, listener);
  } catch (const DeadlockError&) {
    // Who waits for whom does not depend on times: say it of all devices.
    play(built.programs, *make_engine(EngineKind::heap, built.network));
    throw;
  }
}

}  // namespace windtunnel
