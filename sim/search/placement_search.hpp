#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "scenario/scenario.hpp"
#include "search/placement_objective.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {

/// Draws changes of an arrangement, one of these at random (the moves of Pipette's released search):
///  - swap: two units change places;
///  - migrate: one unit goes to another position, those between move up;
///  - reverse: a run of units in the opposite order;
///  - block: a run of units goes to another position, as it is or reversed;
/// and where a node holds several units, two nodes change all of theirs. Positions are in the plan's order of devices:
/// the stages of a pipeline stand side by side.
class PlacementMoves {
 public:
  /// `node_of_slot`: by slot.
  PlacementMoves(std::vector<int> node_of_slot, std::uint64_t seed);

  /// (unit, new slot) of all units that move, at least two; `slots` by unit.
  std::vector<std::pair<int, int>> draw(const std::vector<int>& slots);
  /// From 0 up to but not including 1.
  double fraction();
  std::vector<int> shuffled(std::vector<int> slots);

 private:
  std::size_t below(std::size_t count) { return random_() % count; }
  std::vector<int> rearranged(const std::vector<int>& slots);
  void exchange_nodes(std::vector<int>& slots);
  void move_block(std::vector<int>& slots, std::size_t length);

  std::vector<int> node_of_slot_;
  std::vector<std::vector<int>> slots_of_node_;  ///< nodes in use
  std::mt19937_64 random_;
};

/// Inputs of annealing.
struct AnnealOptions {
  int moves = 0;
  std::uint64_t seed = 0;
};

/// An arrangement and its objective.
struct Annealed {
  std::vector<int> slots;  ///< by unit
  Seconds value{};
};

/// Simulated annealing from where the objective stands (Kirkpatrick et al., Science 220, 671-680, 1983): a move is kept when
/// it is no worse, otherwise with probability exp(-d/T). T falls geometrically from the mean of what random moves cost to
/// a thousandth of it, several times, each time from the best so far. The budget is a number of moves and not a time, so
/// the same seed finds the same. The result is never worse than the start. Leaves the objective at the result.
Annealed anneal(PlacementObjective& objective, const AnnealOptions& options);

/// Moves that annealing tries: enough for the exhaustive optimum of up to 8 nodes in 95 of 100 seeds, and for 64 nodes to
/// come within a percent of ten times as many (docs/placement.md).
inline constexpr int default_placement_moves = 40'000;

/// Options of the search.
struct PlacementOptions {
  std::uint64_t seed = 0;
  int moves = default_placement_moves;
};

/// A placement of ranks, and its gain.
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

/// Prepares a scenario for a command: simulates its neighbours, searches a placement if it asks for one, and returns the scenario to
/// simulate.
Scenario prepare_scenario(Scenario scenario);

/// The reason why one placement is better than another, in one line:
///   "stage 3→4 leaves the 6.2 GB/s link node3->node7; its slowest is now 18.6 GB/s"
///   "the gradient ring of stage 2 leaves the 16.4 GB/s link node5->node6; its slowest is now 18.2 GB/s"
///   "stage 7 moves to GPUs that take 39.8 ms a microbatch, from 57.0 ms"
/// It names the term of the estimate that would lose most if it were still as before; if several are equally bad, so
/// that none loses anything alone, the one whose own time shrinks the most.
std::string why_better(const PlacementObjective& before, const PlacementObjective& after);

}  // namespace windtunnel
