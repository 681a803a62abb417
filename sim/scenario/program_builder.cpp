#include "scenario/program_builder.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/contracts.hpp"
#include "cost/collective_cost.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {
namespace {

/// Members of a collective on one node, in ring order.
struct NodeMembers {
  NodeId node;
  std::vector<DeviceId> devices;
};

class ProgramBuilder {
 public:
  explicit ProgramBuilder(const BuildInputs& in)
      : in_(in), plan_(*in.plan), built_{{}, Network(*in.platform), {}} {}

  BuiltPrograms build() {
    add_stage_programs();
    for (std::size_t i = 0; i < plan_.devices.size(); ++i) add_device(DeviceId{i});
    built_.programs.message_bytes.assign(num_message_rows, message_bytes());
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

  Network::Endpoint endpoint(DeviceId id) const {
    return {device(id).node, device(id).first_gpu, device(id).num_gpus};
  }

  void add_stage_programs() {
    PipelineShape shape;
    shape.schedule = plan_.parallel.schedule;
    shape.send = plan_.parallel.pipeline_send;
    shape.stages = plan_.parallel.pipeline;
    shape.microbatches = plan_.microbatches;
    shape.gradient_reduce = plan_.parallel.data > 1;
    shape.embedding_sync = ties_embeddings();
    if (plan_.parts > 1) {
      shape.tensor = in_.software->overlap_backward_tensor_collectives
                         ? TensorCollectives::overlapped
                         : TensorCollectives::exposed;
    }
    for (int s = 0; s < plan_.parallel.pipeline; ++s)
      set().programs.push_back(make_pipeline_program(shape, StageId{s}));
  }

  /// Stages that hold the same layers and role on the same kind of node, on the same GPUs, cost the
  /// same.
  using CostKey = std::tuple<int, bool, bool, std::string, int, int>;

  const StageCost& stage_cost_of(const PlanDevice& d) {
    const NodeType& node = node_type(d.node);
    const bool position_matters = node.interconnect.kind == Interconnect::Kind::mesh;
    const CostKey key{plan_.stage_layers[d.stage.index()],
                      plan_.is_first(d.stage),
                      plan_.is_last(d.stage),
                      node.device.name,
                      d.num_gpus,
                      position_matters ? d.first_gpu : 0};
    const auto [found, is_new] = cost_by_key_.try_emplace(key);
    if (is_new) {
      std::vector<int> gpus;
      for (int i = 0; i < d.num_gpus; ++i) gpus.push_back(d.first_gpu + i);
      found->second.cost = stage_cost({in_.model, in_.plan, in_.software, &node, d.stage, gpus});
      found->second.work_base = static_cast<std::uint32_t>(set().work.size());
      add_work_table(found->second.cost);
    }
    last_work_base_ = found->second.work_base;
    return found->second.cost;
  }

  static Work work_of(const PassCost& pass) {
    Work work;
    work.duration = pass.duration;
    work.parts[static_cast<std::size_t>(Part::compute)] = pass.compute;
    work.parts[static_cast<std::size_t>(Part::tensor_comm)] = pass.tensor_comm;
    work.parts[static_cast<std::size_t>(Part::other)] = pass.floor_share();
    return work;
  }
  static Work work_of(Seconds duration, Part part) {
    Work work;
    work.duration = duration;
    work.parts[static_cast<std::size_t>(part)] = duration;
    return work;
  }

  /// The backward pass cut in two: what runs before the overlapped collectives, and what runs
  /// beside them.
  static std::pair<Work, Work> split_backward(const StageCost& cost) {
    const Seconds beside = std::min(cost.backward_cross.hidden_behind, cost.backward.compute);
    PassCost before = cost.backward;
    before.compute -= beside;
    before.duration -= beside;
    return {work_of(before), work_of(beside, Part::compute)};
  }

  void add_work_table(const StageCost& cost) {
    const auto [before, beside] = split_backward(cost);
    set().work.push_back(work_of(cost.forward));  // WorkRow::forward
    set().work.push_back(before);                 // WorkRow::backward
    set().work.push_back(beside);                 // WorkRow::backward_overlapped
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
    entry.collectives.assign(num_collective_slots, CollectiveId{});
    set().devices.push_back(std::move(entry));
  }

  /// Bytes of one device's share of a message: each of its ranks sends StageCost::message.
  Bytes message_bytes() const {
    return cost(DeviceId{0}).message * static_cast<double>(plan_.devices.front().num_gpus);
  }

  ChannelId add_channel(DeviceId from, DeviceId to) {
    Channel channel;
    channel.from = from;
    channel.to = to;
    channel.in_node = device(from).node == device(to).node;
    if (channel.in_node) {
      const Interconnect& wires = node_type(device(from).node).interconnect;
      channel.bandwidth = wires.point_to_point * static_cast<double>(device(from).num_gpus);
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

  CollectiveId add_collective(Collective collective, CollectiveSlot slot) {
    const CollectiveId id{set().collectives.size()};
    for (const DeviceId member : collective.members)
      set().devices[member.index()].collectives[static_cast<std::size_t>(slot)] = id;
    set().collectives.push_back(std::move(collective));
    return id;
  }

  std::vector<NodeMembers> by_node(const std::vector<DeviceId>& members) const {
    std::vector<NodeMembers> nodes;
    std::map<NodeId, std::size_t> index;
    for (const DeviceId member : members) {
      const auto [found, is_new] = index.try_emplace(device(member).node, nodes.size());
      if (is_new) nodes.push_back({device(member).node, {}});
      nodes[found->second].devices.push_back(member);
    }
    return nodes;
  }

  /// A ring all-reduce of `payload` a rank through one rank of each member, once for every rank of
  /// a device.
  Collective ring(const std::vector<DeviceId>& members, Bytes payload) {
    Collective collective;
    collective.members = members;
    const int ranks_a_device = device(members.front()).num_gpus;
    const Bytes volume = ring_all_reduce_volume(payload, static_cast<int>(members.size())) *
                         static_cast<double>(ranks_a_device);
    collective.traffic_bytes = volume * static_cast<double>(members.size());
    const std::vector<NodeMembers> nodes = by_node(members);
    for (const NodeMembers& node : nodes)
      collective.fixed = std::max(collective.fixed, in_node_part(node, payload));
    if (nodes.size() == 1) return collective;
    collective.latency =
        in_.platform->fabric.collective_latency *
        ring_all_reduce_crossings(static_cast<int>(members.size()), static_cast<int>(nodes.size()));
    for (std::size_t i = 0; i < nodes.size(); ++i)
      add_edge(collective, nodes[i], nodes[(i + 1) % nodes.size()], volume);
    return collective;
  }

  Seconds in_node_part(const NodeMembers& node, Bytes payload) const {
    std::vector<int> gpus;
    for (const DeviceId member : node.devices) gpus.push_back(device(member).first_gpu);
    return in_node_all_reduce(node_type(node.node).interconnect, gpus, payload);
  }

  /// The ring's edge between two nodes, spread over their members.
  void add_edge(Collective& collective, const NodeMembers& from, const NodeMembers& to,
                Bytes volume) {
    const std::size_t lanes = std::max(from.devices.size(), to.devices.size());
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const Route route = built_.network.route(endpoint(from.devices[lane % from.devices.size()]),
                                               endpoint(to.devices[lane % to.devices.size()]));
      collective.flows.push_back({route.up, route.down, volume / static_cast<double>(lanes)});
    }
  }

  void add_gradient_reductions() {
    if (plan_.parallel.data == 1) return;
    for (int s = 0; s < plan_.parallel.pipeline; ++s) {
      for (int part = 0; part < plan_.parts; ++part) {
        std::vector<DeviceId> members;
        for (int d = 0; d < plan_.parallel.data; ++d)
          members.push_back(plan_.device(d, StageId{s}, part));
        add_collective(ring(members, cost(members.front()).gradients),
                       CollectiveSlot::gradient_reduce);
      }
    }
  }

  void add_embedding_syncs() {
    if (!ties_embeddings()) return;
    const StageId first{0}, last{plan_.parallel.pipeline - 1};
    for (int d = 0; d < plan_.parallel.data; ++d) {
      for (int part = 0; part < plan_.parts; ++part) {
        const std::vector<DeviceId> members{plan_.device(d, first, part),
                                            plan_.device(d, last, part)};
        add_collective(ring(members, cost(members.front()).embedding_gradients),
                       CollectiveSlot::embedding_sync);
      }
    }
  }

  /// `count` all-reduces of a tensor group across nodes, as one collective: every node edge carries
  /// all channels' bytes.
  Collective tensor_ring(const std::vector<DeviceId>& members, int count) {
    const int ranks = plan_.parallel.tensor;
    const double repeats = count;
    Collective collective;
    collective.members = members;
    const Bytes payload = cost(members.front()).tensor_payload * repeats;
    const Bytes volume = ring_all_reduce_volume(payload, ranks);
    collective.traffic_bytes = volume * static_cast<double>(ranks);
    collective.latency = in_.platform->fabric.collective_latency *
                         (ring_all_reduce_crossings(ranks, plan_.parts) * repeats);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Route route =
          built_.network.route(endpoint(members[i]), endpoint(members[(i + 1) % members.size()]));
      collective.flows.push_back({route.up, route.down, volume});
    }
    return collective;
  }

  void add_tensor_collectives() {
    if (plan_.parts == 1) return;
    for (int d = 0; d < plan_.parallel.data; ++d) {
      for (int s = 0; s < plan_.parallel.pipeline; ++s) {
        std::vector<DeviceId> members;
        for (int part = 0; part < plan_.parts; ++part)
          members.push_back(plan_.device(d, StageId{s}, part));
        const StageCost& c = cost(members.front());
        add_collective(tensor_ring(members, c.forward_cross.exposed),
                       CollectiveSlot::tensor_forward);
        add_collective(tensor_ring(members, c.backward_cross.exposed),
                       CollectiveSlot::tensor_exposed);
        add_collective(tensor_ring(members, c.backward_cross.overlappable),
                       CollectiveSlot::tensor_backward);
      }
    }
  }

  struct CostEntry {
    StageCost cost;
    std::uint32_t work_base = 0;
  };

  const BuildInputs in_;
  const Plan& plan_;
  BuiltPrograms built_;
  std::map<CostKey, CostEntry> cost_by_key_;
  std::uint32_t last_work_base_ = 0;
};

}  // namespace

BuiltPrograms build_programs(const BuildInputs& inputs) { return ProgramBuilder(inputs).build(); }

}  // namespace windtunnel
