#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/document.hpp"
#include "search/rank.hpp"
#include "studies/baseline_preference.hpp"

namespace windtunnel {

/// A plan that another method would recommend, and what it costs by simulation.
struct MethodPick {
  PlanChoice choice;
  Seconds estimate{};  ///< what the method thinks it takes
  Seconds time{};      ///< simulated
  Bytes memory_max{};
  bool fits = true;  ///< in memory, with the margin of the search
};

/// Plans that AMP, Varuna, Pipette or Megatron's rule of thumb would have picked of the same ones.
struct MethodChoice {
  Baseline method = Baseline::amp;
  std::size_t considered = 0;  ///< plans that can be laid out
  std::size_t left_out =
      0;  ///< of them by the method itself: what it thinks does not fit, or does not know
  std::vector<MethodPick> picks;  ///< in the method's order, simulated
  std::vector<RankedPlan> best;   ///< the best plan by simulation, if any fits
};

/// Orders the plans of the space around `base` as the method does, and simulates the first `options.top` of them and the best of ours.
MethodChoice choose_by(Baseline method, const Scenario& base, const RankOptions& options);

/// What `rank --method` answers: the method's picks, and how much slower the first is than the best.
document::Document method_document(const Scenario& base, const MethodChoice& choice);

}  // namespace windtunnel
