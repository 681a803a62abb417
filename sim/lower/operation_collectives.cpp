#include "lower/operation_collectives.hpp"

#include <cstddef>

#include "lower/drawn_rows.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {

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
    add_over(groups_.parts_of(replica, stage), GroupKind::tensor);
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
            !is_played_on_network(label, plan_.nodes_per_tensor_group > 1))
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
    return collectives_.sharded_ring(members, operation.payload,
                                     row_of(operation.label).kind == OperationKind::all_reduce
                                         ? RingWork::all_reduce
                                         : RingWork::scatter_or_gather,
                                     group_of(operation.label) == GroupKind::expert_data
                                         ? expert_copies_in_tensor_group(plan_.parallel)
                                         : 1);
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
  const Bytes payload = operation.payload * (expert_load_ / operation.share);
  const auto with = [&](Bytes of_fullest) {
    return collectives_.exchange(members, operation,
                                 exchange_bytes(of_fullest, copies, group, dispatch), group);
  };
  Collective collective = with(payload);
  collective.varying = with(payload * 2.0).fixed - collective.fixed;  // all but the floor
  return collective;
}

}  // namespace windtunnel
