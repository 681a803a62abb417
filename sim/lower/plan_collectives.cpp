#include "lower/plan_collectives.hpp"

#include <cstddef>

#include "core/contracts.hpp"
#include "cost/codec_shapes.hpp"
#include "cost/end_of_iteration.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {

void PlanCollectives::add_gradient_reductions() {
  if (gradient_reduction(plan_) == GradientReduction::none) return;
  for (int s = 0; s < plan_.parallel.pipeline; ++s)
    for (int part = 0; groups_.is_first_holder(StageId{s}) && part < plan_.nodes_per_tensor_group;
         ++part)
      add_data_collectives(groups_.holders_of(StageId{s}, part));
}

void PlanCollectives::add_data_collectives(const std::vector<DeviceId>& members) {
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
    add(collectives_.gradients(members, codecs_.gathered_parameters(codec).payload,
                               RingWork::scatter_or_gather),
        slot_of(CollectiveSlot::parameter_gather));
}

void PlanCollectives::add_reduction(const std::vector<DeviceId>& members,
                                    const EncodedCollective& encoded, bool two_parts,
                                    std::uint32_t slot, std::uint32_t second_slot, double copies) {
  const RingWork work = plan_.parallel.zero_stage > 0 && !two_parts ? RingWork::scatter_or_gather
                                                                    : RingWork::all_reduce;
  add(collectives_.gradients(members, encoded.payload, work, copies), slot);
  if (two_parts)
    add(collectives_.gradients(members, encoded.second_payload, work, copies), second_slot);
}

void PlanCollectives::add_expert_reductions() {
  if (!any_end_has(Label::gather_expert_parameters) && !any_end_has(Label::reduce_expert_gradients))
    return;
  for (int s = 0; s < plan_.parallel.pipeline; ++s)
    for (int part = 0; groups_.is_first_holder(StageId{s}) && part < plan_.nodes_per_tensor_group;
         ++part)
      for (int replica = 0; replica < plan_.parallel.replicas(); ++replica)
        if (replicas_with(plan_.parallel, replica, GroupKind::expert_data).first == replica)
          add_expert_reductions(groups_.holders_of_experts(replica, StageId{s}, part));
}

bool PlanCollectives::any_end_has(Label label) const {
  for (int s = 0; s < plan_.parallel.pipeline; ++s)
    if (find(cost(plan_.device(0, StageId{s}, 0)).end, label) != nullptr) return true;
  return false;
}

void PlanCollectives::add_expert_reductions(const std::vector<DeviceId>& members) {
  const CodecStage codec = costs_.codec_stage(device(members.front()), cost(members.front()));
  const bool two_parts = codecs_.reduces_experts_in_two_parts(codec);
  const double copies = expert_copies_in_tensor_group(plan_.parallel);
  for (const Operation& operation : codec.cost->end) {
    if (group_of(operation.label) != GroupKind::expert_data) continue;
    if (operation.label == Label::gather_expert_parameters)
      add(collectives_.gradients(members, codecs_.gathered_experts(codec).payload,
                                 RingWork::scatter_or_gather, copies),
          slot_of(end_place(operation.label).slot));
    else
      add_reduction(members, codecs_.reduced_experts(codec), two_parts,
                    slot_of(CollectiveSlot::expert_gradient_reduce),
                    slot_of(CollectiveSlot::expert_gradient_reduce_second), copies);
  }
  for (int chunk = 0; chunk < plan_.parallel.virtual_pipeline; ++chunk)
    for (const Operation& operation :
         codec.cost->chunks[static_cast<std::size_t>(chunk)].reductions)
      if (group_of(operation.label) == GroupKind::expert_data)
        add_reduction(members, codecs_.reduced_expert_bucket(codec, chunk), two_parts,
                      slot_of(ChunkCollective::expert_bucket, chunk),
                      slot_of(ChunkCollective::expert_bucket_second, chunk), copies);
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
  add(collectives_.flat(members, sync->payload, RingWork::all_reduce),
      slot_of(end_place(sync->label).slot));
}

}  // namespace windtunnel
