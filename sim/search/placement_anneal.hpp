#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "search/placement_objective.hpp"

namespace windtunnel {

/// Draws changes of an arrangement, one of these at random (the moves of Pipette's released search):
///  - swap: two units change places;
///  - migrate: one unit goes to another position, those between move up;
///  - reverse: a run of units in the opposite order;
///  - block: a run of units goes to another position, as it is or reversed;
/// and where a node holds several units, two nodes change all of theirs. Positions are in the plan's order of devices:
/// the stages of a pipeline stand beside each other.
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

/// The best of all arrangements, each tried once: n! of them, for tests on small cases.
Annealed try_all(PlacementObjective& objective);

}  // namespace windtunnel
