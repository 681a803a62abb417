#pragma once

#include <cstddef>
#include <string>

#include "report/document.hpp"
#include "search/rank.hpp"

namespace windtunnel {

/// Result of `rank`: windtunnel/rank-v1. Keys with a single tried value have no column in the table. Its text, at most 100
/// characters wide where the numbers allow it:
///
///   rank-gpt-39b-512xa100
///
///     gpt-39b on 512 GPUs of a100-80gb-4hdr with megatron-deepspeed-2021
///
///     #  tensor  pipeline  data  microbatch     time  slower by  samples/s    memory  what takes the time
///     1       8         4    16           4  14.65 s                 104.8  61.2 GiB  compute 84 %, pipeline bubble 8 %
///     2       8         8     8           4  14.86 s    ≈ 1.4 %      103.4  48.0 GiB  compute 82 %, pipeline bubble 11 %
///
///     144 plans considered: 24 cannot be laid out, 31 do not fit in memory, 20 of the rest simulated
///     …
///     ≈ plans 1 and 2 cannot be told apart: …
///     ✓ by the model, the table is proven: no other plan is faster than one in it (gap 0.0 %)
document::Document rank_document(const Scenario& base, const RankResult& result);

/// Why one plan is, or is not, what a search recommends.
struct PlanExplanation {
  PlanChoice choice;
  std::vector<PlanRejection> shape;     ///< why it cannot be laid out; else empty
  std::optional<MemoryCheck> memory;    ///< of a plan that can be laid out
  std::optional<RankedPlan> simulated;  ///< of a plan that also fits
  std::optional<RankedPlan> best;       ///< of the search, where it found one

  bool is_rejected() const { return !simulated.has_value(); }
};

/// Takes the plan through the steps of a search that gave `result`, and simulates it.
PlanExplanation explain_plan(const Scenario& base, const PlanChoice& choice,
                             const RankResult& result);

/// The explanation: windtunnel/rank-why-v1, whose `verdict` is shape, memory or legal. A plan
/// that was simulated stands next to the best one, line by line.
document::Document why_document(const Scenario& base, const PlanExplanation& explanation);

/// A plan with its launch arguments and the GPU of each rank, "node:gpu": windtunnel/launch-v1. `row`: its rank in the table, from 1.
std::string launch_json(const Scenario& base, const RankedPlan& plan, std::size_t row,
                        const Plan& laid_out);

/// Value of a key of plans as JSON: a number, a truth value or a word.
JsonValue plan_value(const Key& key, int value);

}  // namespace windtunnel
