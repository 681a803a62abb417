#pragma once

#include <vector>

#include "memory/memory_account.hpp"
#include "plan/plan.hpp"
#include "report/trace_slices.hpp"
#include "timeline/timeline.hpp"

namespace windtunnel::detail {

/// Bytes in use on a device from a time on.
struct MemorySample {
  Nanoseconds at = 0;
  std::int64_t bytes = 0;
};

/// Memory of each device over the iteration. Its maximum is the account's `allocated` of the stage,
/// to the byte:
///   bytes(t) = allocated - (k_max - k(t)) activation,   k: microbatches in flight, k_max: the most
///   ever
/// A (microbatch, model chunk) pair is in flight from the start of its first forward op to the end
/// of its last backward op (or weight gradient); it costs 1/v of activation_per_microbatch. Where
/// the optimizer step sets the maximum, bytes(t) is lower by the step's temporaries outside the
/// step. Known limit: buffers and gradients count as held all the time, so that between maxima the
/// true value is lower. Devices of stages without an account have no samples.
std::vector<std::vector<MemorySample>> memory_counters(const Timeline& timeline, const Plan& plan,
                                                       const MemoryAccount& memory);

}  // namespace windtunnel::detail
