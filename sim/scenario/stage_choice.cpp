#include "scenario/stage_choice.hpp"

#include <numeric>
#include <optional>

namespace windtunnel {
namespace {

/// Two iteration times this close are the same: rounding of many additions.
constexpr double same = 1e-9;

Compression with_prefix(Compression compression, int stages) {
  compression.gradient_stages.kind = CompressedStages::Kind::listed;
  compression.gradient_stages.listed.resize(static_cast<std::size_t>(stages));
  std::iota(compression.gradient_stages.listed.begin(), compression.gradient_stages.listed.end(),
            0);
  return compression;
}

Seconds iteration_time(const BuildInputs& inputs, const Compression& compression) {
  Plan plan = *inputs.plan;
  plan.compression = compression;
  BuildInputs tried = inputs;
  tried.plan = &plan;
  return play(build_programs(tried), EngineKind::heap).end;
}

}  // namespace

Compression with_stages_chosen(const BuildInputs& inputs) {
  const Compression& asked = inputs.plan->compression;
  if (!asked.data_gradients || asked.gradient_stages.kind != CompressedStages::Kind::automatic)
    return asked;
  std::optional<Seconds> least;
  Compression best = asked;
  for (int stages = 0; stages <= inputs.plan->parallel.pipeline; ++stages) {
    const Compression candidate = with_prefix(asked, stages);
    const Seconds time = iteration_time(inputs, candidate);
    if (least && time >= *least * (1 - same)) continue;
    least = time;
    best = candidate;
  }
  return best;
}

}  // namespace windtunnel
