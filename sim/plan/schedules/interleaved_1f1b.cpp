#include <algorithm>

#include "core/contracts.hpp"
#include "plan/schedules/variants.hpp"

namespace windtunnel::schedules {
namespace {

/// The k-th pass of a device in one direction: groups of p microbatches go through all v chunks before the next group.
Step pass_number(int k, Phase phase, const OrderShape& shape) {
  const int p = shape.stages, v = shape.chunks;
  const int in_group = k % (p * v);
  const int visited = in_group / p;
  const int chunk = phase == Phase::forward ? visited : v - 1 - visited;
  return {phase, static_cast<std::uint16_t>(chunk),
          static_cast<std::uint32_t>(k / (p * v) * p + in_group % p)};
}

std::vector<Step> order(const OrderShape& shape, StageId stage) {
  if (shape.chunks == 1) return one_f_one_b_order(shape, stage);
  WT_EXPECT(shape.microbatches % shape.stages == 0);
  const int s = static_cast<int>(stage.index());
  const int passes = shape.microbatches * shape.chunks;
  const int wanted = 2 * (shape.stages - s - 1) + (shape.chunks - 1) * shape.stages;
  const bool is_one_group = shape.microbatches == shape.stages && !shape.alternates_one_group;
  const int warm_up = is_one_group ? passes : std::min(wanted, passes);
  std::vector<Step> steps;
  steps.reserve(2 * static_cast<std::size_t>(passes));
  for (int k = 0; k < warm_up; ++k) steps.push_back(pass_number(k, Phase::forward, shape));
  for (int k = warm_up; k < passes; ++k) {
    steps.push_back(pass_number(k, Phase::forward, shape));
    steps.push_back(pass_number(k - warm_up, Phase::backward, shape));
  }
  for (int k = passes - warm_up; k < passes; ++k)
    steps.push_back(pass_number(k, Phase::backward, shape));
  return steps;
}

/// A group of p microbatches waits for chunks of the group before, and up to two groups are on their way.
ScheduleReach reach(const OrderShape& shape) {
  if (shape.chunks == 1) return one_f_one_b_reach(shape);
  return {.step = shape.stages, .lag = 4 * shape.stages};
}

}  // namespace

/// 1F1B over v chunks in groups of p microbatches; 2 (p - s - 1) + (v - 1) p warm-up forwards (Narayanan et al. 2021,
/// arXiv:2104.04473, 2.2.2; get_model_chunk_id and num_warmup_microbatches of forward_backward_pipelining_with_interleaving in
/// megatron/schedules.py, Megatron-LM v2.5). A single group runs all forwards first there (all_warmup_microbatches), and alternates as any
/// other since (get_pp_rank_microbatches in megatron/core/pipeline_parallel/schedules.py, Megatron-LM at d98e8a6).
Schedule interleaved_1f1b() {
  return {.name = "interleaved_1f1b",
          .order = order,
          .chunks = ChunksPerDevice::any_in_groups,
          .is_default = true,
          .reach = reach,
          .idles_only_at_the_ends = true,
          .megatron_arguments = std::vector<std::string>{}};
}

}  // namespace windtunnel::schedules
