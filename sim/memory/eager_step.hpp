#pragma once

#include "passes/pass.hpp"
#include "plan/plan.hpp"
#include "platform/software_profile.hpp"
#include "units/quantity.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// A rank of one stage, and what its device has for the allocator.
struct EagerStage {
  const Transformer& model;
  const Plan& plan;
  const SoftwareProfile& software;
  ChunkRole role;
  int in_flight = 1;  ///< microbatches, at most
  bool is_launch_bound = false;
  Bytes capacity{};
};

/// True if the order in which the stack allocates and frees in a step of this plan is known: nanotron's (`waiting_collectives` of the
/// profile), of dense layers with flash attention and a gated MLP, each recomputed whole or not at all, without codecs, and with backward passes in one piece.
bool knows_allocations(const EagerStage& stage);

/// The most that PyTorch's allocator reserves: two steps are simulated request by request (docs/memory.md, section 10), as the optimizer's
/// moments are allocated at the end of the first one.
struct EagerReserved {
  Bytes most{};
  Bytes in_step{};  ///< behind the last backward pass
};
EagerReserved reserved_by_eager_step(const EagerStage& stage);

}  // namespace windtunnel
