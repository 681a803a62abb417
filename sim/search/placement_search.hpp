#pragma once

#include <string>
#include <vector>

#include "scenario/scenario.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {

/// Moves that annealing tries: enough for the exhaustive optimum of up to 8 nodes in 95 of 100 seeds, and for 64 nodes to
/// come within a percent of ten times as many (docs/placement.md).
inline constexpr int default_placement_moves = 40'000;

/// How to search.
struct PlacementOptions {
  std::uint64_t seed = 0;
  int moves = default_placement_moves;
};

/// Where ranks go, and what it is worth.
struct PlacementResult {
  enum class Verdict {
    found,  ///< faster than the plan's own placement, by estimate and by simulation
    kept,   ///< nothing better was found, or it simulates no faster: `placement` is the plan's own
  };
  Verdict verdict = Verdict::kept;
  std::vector<int> placement;  ///< rank -> node * gpus_per_node + gpu
  Seconds estimate_before{},
      estimate_after{};  ///< of the plan's own placement and of the best found
  Seconds simulated_before{}, simulated_after{};  ///< likewise; equal when nothing better was found
  std::string why;                                ///< in one line
};

/// Rank -> GPU when each device of the plan stands where another of its devices stands in it: `slots` by device.
std::vector<int> placement_of(const Plan& plan, const std::vector<int>& slots);

/// Searches for a faster placement of the scenario's plan: tensor groups (their share of a node) change places, the estimate
/// of PlacementObjective falls by annealing, and the best is simulated against the plan's own placement. Deterministic in scenario, seed and number of moves.
PlacementResult search_placement(const Scenario& scenario, const PlacementOptions& options = {});

/// The scenario with a placement that was found: the plan made anew, its resolved form with the ranks' GPUs ("found by
/// search"), and what the report says of it. The hash stays, which stands for the wish and the seed.
Scenario with_placement(const Scenario& scenario, const PlacementResult& result);

/// What a command does with a scenario: searches where it asks for it, and gives back what to simulate.
Scenario place_if_asked(Scenario scenario);

}  // namespace windtunnel
