#pragma once

#include <optional>
#include <vector>

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

}  // namespace windtunnel
