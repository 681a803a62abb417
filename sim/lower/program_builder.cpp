#include "lower/program_builder.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/memory_left.hpp"
#include "core/work_note.hpp"
#include "lower/codec_plan.hpp"
#include "lower/collective_builder.hpp"
#include "lower/stage_choice.hpp"
#include "lower/stage_cost_table.hpp"
#include "lower/token_draws.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {
namespace {

class ProgramBuilder {
 public:
  explicit ProgramBuilder(const BuildInputs& in)
      : in_(in),
        plan_(*in.plan),
        codecs_(*in.model, *in.plan, *in.software),
        built_{{},
               Network(*in.platform, in.plan->num_nodes),
               {},
               in.plan->compression,
               simulates_operations(in),
               {}},
        routes_(plan_, built_.network),
        collectives_(in_, routes_),
        draws_(in_),
        costs_(in_, built_.by_operation, codecs_, draws_, built_.network, built_.programs) {}

  BuiltPrograms build() {
    const WorkNoteScope building("building the programs");
    expect_memory();
    add_stage_programs();
    for (std::size_t i = 0; i < plan_.devices.size(); ++i) add_device(DeviceId{i});
    add_message_sizes();
    if (built_.by_operation) OperationCollectives(in_, collectives_, costs_, draws_, built_).add();
    PlanCollectives whole(in_, codecs_, collectives_, costs_, built_);
    whole.add_gradient_reductions();
    whole.add_expert_reductions();
    whole.add_embedding_syncs();
    return std::move(built_);
  }

 private:
  /// The programs themselves, and the state in which they are simulated.
  void expect_memory() {
    // Resident memory of two runs, 1,024 and 4,096 microbatches of gpt-39b-512xa100: by layer, 79 to 102 B an operation.
    constexpr double bytes_of_pass = 170, bytes_of_operation = 90;
    double events = bytes_of_pass + (draws_.vary() ? drawn_bytes_of_pass() : 0);
    if (built_.by_operation) {
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

  /// Bytes of the work table for a microbatch through a chunk and back, in all groups that exchange tokens.
  double drawn_bytes_of_pass() const {
    constexpr double rows_of_pass = 7;        // DrawnRowWriter: with two halves and blocks
    constexpr double varying_operations = 3;  // of a layer: experts forward, again and backward
    const double groups = plan_.parallel.replicas() / replicas_of_experts(plan_.parallel);
    const double layers = built_.by_operation ? plan_.most_chunk_layers(StageId{0}) : 0;
    return sizeof(Work) * (rows_of_pass + varying_operations * layers) * groups;
  }

  ProgramSet& set() { return built_.programs; }
  const PlanDevice& device(DeviceId id) const { return plan_.devices[id.index()]; }
  const NodeType& node_type(NodeId node) const { return (*in_.nodes)[node.index()]; }

  PipelineShape pipeline_shape() const {
    PipelineShape shape;
    shape.send = plan_.parallel.pipeline_send;
    shape.stages = plan_.parallel.pipeline;
    shape.microbatches = plan_.microbatches;
    shape.chunks = plan_.parallel.virtual_pipeline;
    shape.chunk_path = plan_.parallel.schedule->chunk_path;
    shape.gradient_reduction = gradient_reduction(plan_);
    shape.overlaps_passes = overlaps_passes(plan_);
    shape.tensor_crosses_nodes = plan_.nodes_per_tensor_group > 1;
    return shape;
  }

  void add_stage_programs() {
    for (int s = 0; s < plan_.parallel.pipeline; ++s) {
      const StageId stage{s};
      PipelineShape shape = pipeline_shape();
      const StageCost& cost = *costs_.of(device(plan_.device(0, stage, 0))).cost;
      shape.compressed = codecs_.traffic_of(stage, cost);
      shape.end = cost.end;
      if (built_.by_operation) shape.operations = operations_of(cost);
      for (const ChunkCost& chunk : cost.chunks) shape.reductions.push_back(chunk.reductions);
      shape.gradient_buckets = gradient_buckets(plan_, stage);
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
    entry.collectives.resize(set().programs[entry.program].num_collectives);
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

  const BuildInputs in_;
  const Plan& plan_;
  const CodecPlan codecs_;
  BuiltPrograms built_;
  const DeviceRoutes routes_;
  const CollectiveBuilder collectives_;
  const TokenDraws draws_;
  StageCostTable costs_;
};

/// True if a node's NICs serve each of its devices alike; otherwise the device with the fewest decides, and not the node's rate.
bool shares_nics_evenly(const NodeType& node, const Plan& plan) {
  const int devices = std::max(1, node.gpus / plan.parallel.tensor);
  return node.nics == 0 || devices % node.nics == 0 || node.nics % devices == 0;
}

/// Placement on nodes of the groups that group_of(replica) returns.
struct OnNodes {
  bool leave = false;   ///< one is on several
  bool uneven = false;  ///< one with unlike parts, or with members that hear from different nodes
};

template <class GroupOf>
OnNodes on_nodes(const Plan& plan, const GroupOf& group_of) {
  OnNodes found;
  const auto node_of = [&](int replica, const PlanDevice& like, int stage) {
    return plan.devices[plan.device(replica, StageId{stage}, like.group_node).index()].node;
  };
  const int stages = plan.parallel.pipeline;
  for (const PlanDevice& device : plan.devices) {
    const ReplicaGroup group = group_of(device.replica);
    if (group.first != device.replica) continue;
    const int stage = static_cast<int>(device.stage.index());
    const auto next_is_near = [&](int replica) {
      return node_of(replica, device, stage) == node_of(replica, device, (stage + 1) % stages);
    };
    std::map<NodeId, int> members;
    bool alike = true;
    for (int i = 0; i < group.size; ++i) {
      ++members[node_of(group[i], device, stage)];
      alike = alike && next_is_near(group[i]) == next_is_near(group.first);
    }
    if (members.size() == 1) continue;
    found.leave = true;
    for (const auto& [node, count] : members) alike = alike && count == members.begin()->second;
    found.uneven = found.uneven || !alike;
  }
  return found;
}

}  // namespace

bool simulates_operations(const BuildInputs& inputs) {
  const Plan& plan = *inputs.plan;
  if (inputs.detail == Detail::layer || plan.nodes_per_tensor_group > 1) return true;
  const Parallel& parallel = plan.parallel;
  const bool gathers = parallel.gathers_in_passes() && parallel.replicas() > 1;
  OnNodes experts, axes;
  if (parallel.expert > 1)
    experts = on_nodes(plan, [&](int replica) { return exchanging_replicas(parallel, replica); });
  for (const AxisName axis : cut_axes(parallel)) {
    const OnNodes along = on_nodes(
        plan, [&](int replica) { return replicas_with(parallel, replica, GroupKind::axis, axis); });
    axes = {axes.leave || along.leave, axes.uneven || along.uneven};
  }
  const bool exchanges_tokens = experts.leave, exchanges_along_axes = axes.leave;
  if (!gathers && !exchanges_tokens && !exchanges_along_axes) return false;
  if (experts.uneven || axes.uneven) return true;
  if (exchanges_along_axes && parallel.pipeline > 1) return true;  // they meet messages
  // Prefetched gathers share the NICs with exchanges of experts or along an axis.
  if (gathers && parallel.zero_prefetch > 0 && (exchanges_tokens || exchanges_along_axes))
    return true;
  return !unevenness(*inputs.platform, plan.num_nodes).empty() ||
         (plan.num_nodes > 1 && !shares_nics_evenly(inputs.nodes->front(), plan));
}

BuiltPrograms build_programs(const BuildInputs& inputs) {
  const PlanWithStages with_stages(inputs);
  BuildInputs chosen = inputs;
  chosen.plan = &with_stages.plan();
  BuiltPrograms built = ProgramBuilder(chosen).build();
  if (inputs.replicas == Replicas::collapsed_when_exact)
    built.collapsed = collapse(built.programs, built.network);
  return built;
}

EngineResult simulate_programs(const BuiltPrograms& built, MakeEngine make_engine,
                               SimulationListener* listener) {
  const WorkNoteScope simulating("simulating", "activities");
  const std::unique_ptr<Engine> engine = make_engine(built.simulated_network());
  if (!built.collapsed) return simulate_programs(built.programs, *engine, listener);
  try {
    return simulate_programs(*built.collapsed, *engine, listener);
  } catch (const DeadlockError&) {
    // The wait relation does not depend on times, so report it for all devices.
    simulate_programs(built.programs, *make_heap_engine(built.network));
    throw;
  }
}

}  // namespace windtunnel
