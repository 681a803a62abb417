#include "plan/gradient_reduction.hpp"

#include <algorithm>

namespace windtunnel {

GradientReduction gradient_reduction(const Plan& plan) {
  if (plan.parallel.gradient_replicas() == 1 || plan.parallel.scatters_in_passes())
    return GradientReduction::none;
  return plan.parallel.zero_stage == 2 ? GradientReduction::per_microbatch
                                       : GradientReduction::per_iteration;
}

bool reduces_by_chunk(const Plan& plan) {
  switch (gradient_reduction(plan)) {
    case GradientReduction::none:
      return false;
    case GradientReduction::per_iteration:
      return plan.parallel.overlap_gradient_reduce;
    case GradientReduction::per_microbatch:
      return true;
  }
  return false;
}

int gradient_buckets(const Plan& plan, StageId stage) {
  if (!plan.parallel.overlap_gradient_reduce) return 1;
  const int each = plan.layers_of_bucket;
  return std::max(1, (plan.most_chunk_layers(stage) + each - 1) / each);
}

}  // namespace windtunnel
