#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/summary_text.hpp"
#include "search/rank.hpp"

namespace windtunnel {

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

/// The explanation for a terminal. A plan that was simulated stands beside the best one, line by line:
///
///   tensor 4 · pipeline 4 · data 32 · micro_batch 8
///     ✗ does not fit: stage 0 needs 79.9 GiB and a margin of 3.99 GiB, the GPU has 79.2 GiB
std::string explanation_text(const Scenario& base, const PlanExplanation& explanation,
                             Colour colour = Colour::never);

/// The same as one JSON document, windtunnel/rank-why-v1: `verdict` is shape, memory or legal.
std::string explanation_json(const Scenario& base, const PlanExplanation& explanation);

}  // namespace windtunnel
