#include "lower/collective_builder.hpp"

#include <algorithm>
#include <cstddef>

#include "core/contracts.hpp"
#include "cost/codec_cost.hpp"
#include "cost/collective_cost.hpp"
#include "cost/end_of_iteration.hpp"
#include "lower/stage_cost_table.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {

CollectiveMembers CollectiveBuilder::placed(const std::vector<DeviceId>& members) const {
  std::vector<NodeId> nodes;
  nodes.reserve(members.size());
  for (const DeviceId member : members) nodes.push_back(device(member).node);
  return {std::move(nodes),
          [this, &members](std::size_t i) -> const std::vector<int>& {
            return device(members[i]).gpus;
          },
          [this, &members](std::size_t i) -> const NodeType& {
            return (*in_->nodes)[device(members[i]).node.index()];
          }};
}

Collective CollectiveBuilder::made_of(const Steps& steps, const std::vector<DeviceId>& members,
                                      Bytes payload, RingKind work, double copies) const {
  const CollectiveMembers on_nodes = placed(members);
  const CollectiveSteps made = steps(collective_task(*in_->platform, on_nodes, payload, work,
                                                     in_->software->gathers_by_pat, copies));
  Collective collective{members, made.fixed, made.latency, {}, made.traffic, payload};
  for (const MemberFlow& flow : made.flows) {
    const Route route = routes_->between(members[flow.from], members[flow.to]);
    collective.flows.push_back({route.up, route.down, flow.bytes});
  }
  return collective;
}

Collective CollectiveBuilder::flat(const std::vector<DeviceId>& members, Bytes payload,
                                   RingKind work, double copies) const {
  return made_of([](const CollectiveTask& task) { return flat_collective(task); }, members, payload,
                 work, copies);
}

Collective CollectiveBuilder::gradients(const std::vector<DeviceId>& members, Bytes payload,
                                        RingKind work, double copies) const {
  return made_of(collective_algorithm(in_->plan->parallel.gradient_ring).steps, members, payload,
                 work, copies);
}

Collective CollectiveBuilder::sharded_ring(const std::vector<DeviceId>& members, Bytes payload,
                                           RingKind work, double copies, int calls) const {
  if (payload == Bytes{0}) return {members, {}, {}, {}, {}, {}};
  const auto steps = [&](const CollectiveTask& task) {
    if (task.layout->num_nodes() == 1) return flat_collective(task);
    CollectiveTask one = task;
    one.payload = task.payload / calls;
    CollectiveSteps made = flat_collective(one);
    const Seconds inside = made.protocol == "Simple" ? task.in_node(task.payload, task.work)
                                                     : (made.fixed - made.latency) * calls;
    made.latency = (made.latency + in_->platform->fabric.latency * (2 * share_of(work))) * calls;
    made.fixed = made.latency + inside;
    made.traffic = ring_traffic(task);
    for (MemberFlow& flow : made.flows) flow.bytes *= calls;
    return made;
  };
  return made_of(steps, members, payload, work, copies);
}

Collective CollectiveBuilder::broadcasts(const std::vector<DeviceId>& members, Bytes payload,
                                         int owners) const {
  const auto n = static_cast<double>(members.size());
  // A gather of n shards moves n - 1 of them over each edge, a broadcast all that its owner has.
  Collective collective = flat(members, payload * (n / (n - 1) / owners), RingKind::all_gather);
  collective.payload = payload;
  collective.fixed *= owners;
  collective.latency *= owners;
  collective.traffic_bytes =
      payload * ((n - 1) * static_cast<double>(device(members.front()).num_gpus()));
  for (auto& flow : collective.flows) flow.bytes *= owners;
  return collective;
}

Collective CollectiveBuilder::exchange(const std::vector<DeviceId>& members,
                                       const Operation& operation, const ExchangeBytes& bytes,
                                       const ExpertGroup& group) const {
  Collective collective;
  collective.members = members;
  const CollectiveMembers on_nodes = placed(members);
  const NodeType& node = on_nodes.type_of(0);
  const ExchangeTime time = exchange_time(bytes, group, node, in_->platform->fabric);
  const double simulated = operation.share * operation.exposed;
  collective.fixed = time.fixed * simulated;
  collective.latency = time.latency * simulated;
  double ranks = 0;
  for (const DeviceId member : members) ranks += device(member).num_gpus();
  collective.payload = operation.payload;
  collective.traffic_bytes = bytes.sent * (ranks * operation.share);
  for (const MemberFlow& flow :
       exchange_flows(on_nodes, bytes.between_nodes * simulated, in_->platform->fabric)) {
    const Route route = routes_->between(members[flow.from], members[flow.to]);
    collective.flows.push_back({route.up, route.down, flow.bytes});
  }
  return collective;
}

Collective CollectiveBuilder::tensor_ring(const std::vector<DeviceId>& members, Bytes payload,
                                          double repeats) const {
  const int ranks = in_->plan->parallel.tensor;
  Collective collective;
  collective.members = members;
  const Bytes volume = ring_all_reduce_volume(payload * repeats, ranks);
  collective.traffic_bytes = volume * static_cast<double>(ranks);
  collective.latency =
      in_->platform->fabric.collective_latency *
      (ring_all_reduce_crossings(ranks, in_->plan->nodes_per_tensor_group) * repeats);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Route route = routes_->between(members[i], members[(i + 1) % members.size()]);
    collective.flows.push_back({route.up, route.down, volume});
  }
  return collective;
}

OperationCollectives::OperationCollectives(const BuildInputs& in,
                                           const CollectiveBuilder& collectives,
                                           StageCostTable& costs, const TokenDraws& draws,
                                           BuiltPrograms& built)
    : in_(in),
      plan_(*in.plan),
      groups_(plan_),
      collectives_(collectives),
      costs_(costs),
      draws_(draws),
      built_(built),
      expert_load_(in.model->moe ? expert_load(*in.model->moe, in.plan->parallel.expert).slowest
                                 : 1) {}

void OperationCollectives::add() {
  for (int s = 0; s < plan_.parallel.pipeline; ++s) {
    add_groups(StageId{s});
    add_exchanges(StageId{s});
  }
}

void OperationCollectives::add_groups(StageId stage) {
  const int replicas = plan_.parallel.replicas();
  const auto add_each = [&](GroupKind kind, AxisName axis) {
    for (int part = 0; part < plan_.nodes_per_tensor_group; ++part)
      for (int replica = 0; replica < replicas; ++replica)
        if (replicas_with(plan_.parallel, replica, kind, axis).first == replica)
          add_over(groups_.group_of(replica, kind, stage, part, axis), kind, axis);
  };
  for (const GroupKind kind : {GroupKind::sharding, GroupKind::copies, GroupKind::expert_data})
    add_each(kind, AxisName::data);
  for (const AxisName axis : cut_axes(plan_.parallel)) add_each(GroupKind::axis, axis);
  for (int replica = 0; plan_.nodes_per_tensor_group > 1 && replica < replicas; ++replica)
    add_over(groups_.tensor_group(replica, stage), GroupKind::tensor);
}

void OperationCollectives::add_exchanges(StageId stage) {
  if (plan_.parallel.expert == 1) return;
  const int together = replicas_of_experts(plan_.parallel);
  for (int replica = 0; replica < plan_.parallel.replicas(); replica += together)
    add_over(groups_.exchanging(replica, stage), GroupKind::experts);
}

void OperationCollectives::add_over(const std::vector<DeviceId>& members, GroupKind kind,
                                    AxisName axis) {
  const StageOperations chunks = operations_of(built_.cost_of_device[members.front().index()]);
  const auto directions = directions_of(plan_.parallel.schedule->splits_backward);
  const OperationPlaces places(chunks, directions);
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    for (const Direction direction : directions) {
      const PassOperations& pass = chunks[chunk]->at(direction);
      for (std::size_t number = 0; number < pass.size(); ++number) {
        const Label label = pass[number].label;
        if (group_of(label) != kind || (kind == GroupKind::axis && pass[number].axis != axis) ||
            !is_simulated_on_network(label, plan_.nodes_per_tensor_group > 1))
          continue;
        Collective collective = made_of(members, pass[number]);
        if (kind == GroupKind::experts && draws_.vary())
          set_draws(collective, static_cast<int>(chunk_of(pass[number], chunk)));
        add_collective(built_.programs, std::move(collective),
                       places.slot(static_cast<int>(chunk), direction, number));
      }
    }
  }
}

Collective OperationCollectives::made_of(const std::vector<DeviceId>& members,
                                         const Operation& operation) const {
  if (group_of(operation.label) == GroupKind::experts) return exchange(members, operation);
  if (!is_of_tensor_group(operation.label))
    return collectives_.sharded_ring(members, operation.payload, ring_kind_of(operation.label),
                                     group_of(operation.label) == GroupKind::expert_data
                                         ? expert_copies_in_tensor_group(plan_.parallel)
                                         : 1,
                                     operation.calls);
  constexpr double half = 0.5;
  return collectives_.tensor_ring(
      members, operation.payload / operation.share,
      (operation.label == Label::reduce_activation ? 1 : half) * operation.share);
}

void OperationCollectives::set_draws(Collective& collective, int chunk) {
  ProgramSet& set = built_.programs;
  const DeviceId first = collective.members.front();
  const auto [found, is_new] = first_draw_.try_emplace({first, chunk}, 0);
  if (is_new) {
    if (set.fullness.empty()) set.fullness.push_back(1);
    found->second = static_cast<std::uint32_t>(set.fullness.size());
    const TokenDraws::OfChunk drawn = draws_.of_chunk(plan_, device(first), chunk);
    for (std::size_t layer = 0; layer < drawn.front().size(); ++layer)
      for (const std::vector<double>& microbatch : drawn) set.fullness.push_back(microbatch[layer]);
  }
  collective.draws = found->second;
}

Collective OperationCollectives::exchange(const std::vector<DeviceId>& members,
                                          const Operation& operation) const {
  const PlanDevice& first = device(members.front());
  const ExpertGroup group = costs_.expert_group(first);
  const ExpertDispatch dispatch = in_.software
                                      ->experts_on(in_.platform->type_of(first.node).device,
                                                   plan_.training.precision, *in_.model)
                                      .dispatch;
  const TokenCopies copies = token_copies(*in_.model->moe, group, dispatch);
  const Bytes payload =
      operation.payload * (exchanged_load(dispatch, expert_load_) / operation.share);
  const auto with = [&](Bytes of_fullest) {
    return collectives_.exchange(members, operation,
                                 exchange_bytes(of_fullest, copies, group, dispatch), group);
  };
  Collective collective = with(payload);
  if (dispatch != ExpertDispatch::all_gather)
    collective.varying = with(payload * 2.0).fixed - collective.fixed;  // all but the floor
  return collective;
}

void PlanCollectives::add_gradient_reductions() {
  if (gradient_reduction(plan_) == GradientReduction::none) return;
  const bool in_groups = plan_.reducing_replicas() < plan_.parallel.replicas();
  for (int s = 0; s < plan_.parallel.pipeline; ++s) {
    const StageId stage{s};
    if (!groups_.is_first_holder(stage)) continue;
    for_each_group(stage, in_groups ? GroupKind::sharding : GroupKind::replicas,
                   [this](const auto& members) { add_reductions(members); });
    if (in_groups)
      for_each_group(stage, GroupKind::copies,
                     [this](const auto& members) { add_shard_reductions(members); });
    for_each_group(stage, plan_.parallel.zero_group > 0 ? GroupKind::sharding : GroupKind::replicas,
                   [this](const auto& members) { add_parameter_gather(members); });
  }
}

template <class Add>
void PlanCollectives::for_each_group(StageId stage, GroupKind kind, const Add& add) const {
  for (int part = 0; part < plan_.nodes_per_tensor_group; ++part) {
    if (kind == GroupKind::replicas) {
      add(groups_.holders_of(stage, part));
      continue;
    }
    for (int replica = 0; replica < plan_.parallel.replicas(); ++replica)
      if (replicas_with(plan_.parallel, replica, kind).first == replica)
        add(groups_.group_of(replica, kind, stage, part));
  }
}

void PlanCollectives::add_reductions(const std::vector<DeviceId>& members) {
  const CodecStage codec = costs_.codec_stage(device(members.front()), cost(members.front()));
  for (const int chunk : reduced_chunks(plan_)) add_reduction(members, codec, {chunk});
}

void PlanCollectives::add_shard_reductions(const std::vector<DeviceId>& members) {
  const StageCost& stage = cost(members.front());
  for (const int chunk : reduced_chunks(plan_)) {
    const bool at_end = chunk == at_the_end;
    const Operation* const shards =
        find(at_end ? stage.end : stage.chunks[static_cast<std::size_t>(chunk)].reductions,
             Label::reduce_shards);
    const int pieces = at_end ? 1 : gradient_buckets(plan_, device(members.front()).stage);
    if (shards != nullptr)
      add(collectives_.gradients(members, shards->payload / static_cast<double>(pieces),
                                 RingKind::all_reduce),
          slot_of(ReductionSlot::shards, {chunk}));
  }
}

void PlanCollectives::add_parameter_gather(const std::vector<DeviceId>& members) {
  const CodecStage codec = costs_.codec_stage(device(members.front()), cost(members.front()));
  if (find_parameter_gather(codec.cost->end) == nullptr) return;
  const Bytes payload = codecs_.gathered_parameters(codec).payload;
  constexpr int edge_tensors = 3;  // words, last norm, head
  const int layers = plan_.stage_layers[codec.stage.index()];
  const auto tensors = static_cast<std::size_t>(plan_.broadcast_tensors * layers + edge_tensors);
  add(plan_.broadcasts_parameters()
          ? collectives_.broadcasts(members, payload,
                                    static_cast<int>(std::min(members.size(), tensors)))
          : collectives_.gradients(members, payload, RingKind::all_gather),
      slot_of(CollectiveSlot::parameter_gather));
}

void PlanCollectives::add_reduction(const std::vector<DeviceId>& members, const CodecStage& codec,
                                    Reduction of) {
  const EncodedCollective encoded = codecs_.reduced(codec, of);
  const bool two_parts = codecs_.codec_parts(codec, of.of_experts) == CodecParts::two;
  const RingKind work =
      plan_.scatters_gradients() && !two_parts ? RingKind::reduce_scatter : RingKind::all_reduce;
  // Ranks of a member that hold the same gradients.
  const double copies = of.of_experts ? expert_copies_in_tensor_group(plan_.parallel) : 1;
  add(collectives_.gradients(members, encoded.payload, work, copies),
      slot_of(ReductionSlot::first, of));
  if (two_parts)
    add(collectives_.gradients(members, encoded.second_payload, work, copies),
        slot_of(ReductionSlot::second, of));
}

void PlanCollectives::add_expert_reductions() {
  if (!any_end_has(GroupKind::expert_data)) return;
  for (int s = 0; s < plan_.parallel.pipeline; ++s)
    for (int part = 0; groups_.is_first_holder(StageId{s}) && part < plan_.nodes_per_tensor_group;
         ++part)
      for (int replica = 0; replica < plan_.parallel.replicas(); ++replica)
        if (replicas_with(plan_.parallel, replica, GroupKind::expert_data).first == replica)
          add_expert_reductions(groups_.holders_of_experts(replica, StageId{s}, part));
}

bool PlanCollectives::any_end_has(GroupKind kind) const {
  for (int s = 0; s < plan_.parallel.pipeline; ++s)
    for (const Operation& operation : cost(plan_.device(0, StageId{s}, 0)).end)
      if (group_of(operation.label) == kind) return true;
  return false;
}

void PlanCollectives::add_expert_reductions(const std::vector<DeviceId>& members) {
  const CodecStage codec = costs_.codec_stage(device(members.front()), cost(members.front()));
  for (const Operation& operation : codec.cost->end) {
    if (group_of(operation.label) != GroupKind::expert_data) continue;
    if (operation.label == Label::gather_expert_parameters)
      add(collectives_.gradients(members, codecs_.gathered_experts(codec).payload,
                                 ring_kind_of(operation.label),
                                 expert_copies_in_tensor_group(plan_.parallel)),
          end_place(operation.label).slot);
    else
      add_reduction(members, codec, {.of_experts = true});
  }
  for (int chunk = 0; chunk < plan_.parallel.virtual_pipeline; ++chunk)
    for (const Operation& operation :
         codec.cost->chunks[static_cast<std::size_t>(chunk)].reductions)
      if (group_of(operation.label) == GroupKind::expert_data)
        add_reduction(members, codec, {chunk, true});
}

void PlanCollectives::add_embedding_syncs() {
  if (!synchronises_embedding(*in_.model, plan_)) return;
  const StageId first = plan_.chunk_map().first().stage, last = plan_.chunk_map().last().stage;
  const bool fuses = fuses_embedding_sync(*in_.model, plan_);
  // One group for each replica's two edge stages, or one fused group for all replicas.
  std::vector<std::vector<DeviceId>> fused(static_cast<std::size_t>(plan_.nodes_per_tensor_group));
  for (int d = 0; d < plan_.parallel.replicas(); ++d) {
    for (int part = 0; part < plan_.nodes_per_tensor_group; ++part) {
      const std::vector<DeviceId> edges{plan_.device(d, first, part), plan_.device(d, last, part)};
      auto& group = fused[static_cast<std::size_t>(part)];
      group.insert(group.end(), edges.begin(), edges.end());
      if (!fuses) add_embedding_sync(edges);
    }
  }
  if (fuses)
    for (const std::vector<DeviceId>& members : fused) add_embedding_sync(members);
}

void PlanCollectives::add_embedding_sync(const std::vector<DeviceId>& members) {
  const Operation* const sync = find(cost(members.front()).end, Label::synchronise_embedding);
  WT_EXPECT(sync != nullptr);
  add(collectives_.flat(members, sync->payload, RingKind::all_reduce), end_place(sync->label).slot);
}

}  // namespace windtunnel
