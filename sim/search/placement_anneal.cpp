#include "search/placement_anneal.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

/// Units that a reversed or moved run has at most, and places that it moves by: keeps a move cheap on large clusters.
constexpr std::size_t longest_run = 32;
/// Times the temperature falls.
constexpr int falls = 4;
/// Over which the temperature falls, and random moves it is taken from.
constexpr double last_temperature = 1e-3;
constexpr int sampled_moves = 64;

/// What a random move costs on average, those that gain apart.
Seconds mean_loss(PlacementObjective& objective, PlacementMoves& moves) {
  const Seconds start = objective.value();
  Seconds sum{};
  int losses = 0;
  for (int i = 0; i < sampled_moves; ++i) {
    objective.move(moves.draw(objective.slots()));
    const Seconds loss = objective.value() - start;
    objective.undo();
    if (loss <= Seconds{0}) continue;
    sum += loss;
    ++losses;
  }
  return losses == 0 ? Seconds{0} : sum / static_cast<double>(losses);
}

std::vector<int> nodes_of(const PlacementObjective& objective) {
  std::vector<int> nodes;
  for (int slot = 0; slot < objective.num_units(); ++slot) nodes.push_back(objective.node_of(slot));
  return nodes;
}

}  // namespace

PlacementMoves::PlacementMoves(std::vector<int> node_of_slot, std::uint64_t seed)
    : node_of_slot_(std::move(node_of_slot)), random_(seed) {
  std::map<int, std::vector<int>> by_node;
  for (std::size_t slot = 0; slot < node_of_slot_.size(); ++slot)
    by_node[node_of_slot_[slot]].push_back(static_cast<int>(slot));
  for (auto& [node, slots] : by_node) slots_of_node_.push_back(std::move(slots));
}

double PlacementMoves::fraction() {
  constexpr int unused_bits = 11;  // of 64: a double holds 53
  return std::ldexp(static_cast<double>(random_() >> unused_bits), unused_bits - 64);
}

std::vector<int> PlacementMoves::shuffled(std::vector<int> slots) {
  for (std::size_t left = slots.size(); left > 1; --left)
    std::swap(slots[left - 1], slots[below(left)]);
  return slots;
}

std::vector<std::pair<int, int>> PlacementMoves::draw(const std::vector<int>& slots) {
  WT_EXPECT(slots.size() > 1);
  std::vector<std::pair<int, int>> changes;
  while (changes.empty()) {
    const std::vector<int> after = rearranged(slots);
    for (std::size_t unit = 0; unit < slots.size(); ++unit)
      if (after[unit] != slots[unit]) changes.emplace_back(static_cast<int>(unit), after[unit]);
  }
  return changes;
}

std::vector<int> PlacementMoves::rearranged(const std::vector<int>& slots) {
  enum Kind : std::uint8_t { swap, migrate, reverse, block, reversed_block, nodes };
  const bool several_units = slots_of_node_.size() < slots.size() && slots_of_node_.size() > 1;
  const std::size_t n = slots.size();
  std::vector<int> after = slots;
  const std::size_t first = below(n);
  const std::size_t length = 1 + below(std::min(longest_run, n - first));
  const auto begin = after.begin() + static_cast<std::ptrdiff_t>(first);
  const std::size_t kinds = std::size_t{nodes} + (several_units ? 1 : 0);
  switch (static_cast<Kind>(below(kinds))) {
    case swap:
      std::swap(after[first], after[below(n)]);
      break;
    case migrate:
      move_block(after, 1);
      break;
    case reverse:
      std::reverse(begin, begin + static_cast<std::ptrdiff_t>(length));
      break;
    case reversed_block:
      std::reverse(begin, begin + static_cast<std::ptrdiff_t>(length));
      move_block(after, length);
      break;
    case block:
      move_block(after, length);
      break;
    case nodes:
      exchange_nodes(after);
      break;
  }
  return after;
}

/// A run of so many units elsewhere.
void PlacementMoves::move_block(std::vector<int>& slots, std::size_t length) {
  const std::size_t n = slots.size();
  if (length >= n) return;
  const std::size_t first = below(n - length + 1);
  const std::size_t least = first > longest_run ? first - longest_run : 0;
  const std::size_t most = std::min(first + longest_run, n - length);
  const std::size_t to = least + below(most - least + 1);
  const auto at = [&](std::size_t i) { return slots.begin() + static_cast<std::ptrdiff_t>(i); };
  if (to < first)
    std::rotate(at(to), at(first), at(first + length));
  else
    std::rotate(at(first), at(first + length), at(to + length));
}

void PlacementMoves::exchange_nodes(std::vector<int>& slots) {
  const std::vector<int>& here = slots_of_node_[below(slots_of_node_.size())];
  const std::vector<int>& there = slots_of_node_[below(slots_of_node_.size())];
  std::vector<int> partner(slots.size());
  std::iota(partner.begin(), partner.end(), 0);
  for (std::size_t i = 0; i < std::min(here.size(), there.size()); ++i) {
    partner[static_cast<std::size_t>(here[i])] = there[i];
    partner[static_cast<std::size_t>(there[i])] = here[i];
  }
  for (int& slot : slots) slot = partner[static_cast<std::size_t>(slot)];
}

Annealed anneal(PlacementObjective& objective, const AnnealOptions& options) {
  Annealed best{objective.slots(), objective.value()};
  if (objective.num_units() < 2) return best;
  PlacementMoves moves(nodes_of(objective), options.seed);
  const Seconds hottest = mean_loss(objective, moves);
  const int moves_a_fall = std::max(1, options.moves / falls);
  const double cooling = std::pow(last_temperature, 1.0 / moves_a_fall);
  for (int fall = 0; fall < falls; ++fall) {
    if (objective.slots() != best.slots) objective.place(best.slots);
    Seconds temperature = hottest;
    for (int i = 0; i < moves_a_fall; ++i, temperature *= cooling) {
      const Seconds before = objective.value();
      objective.move(moves.draw(objective.slots()));
      const Seconds loss = objective.value() - before;
      const double chance = moves.fraction();
      const bool keeps = loss <= Seconds{0} ||
                         (temperature > Seconds{0} && chance < std::exp(-(loss / temperature)));
      if (!keeps) {
        objective.undo();
      } else if (objective.value() < best.value) {
        best = {objective.slots(), objective.value()};
      }
    }
  }
  if (objective.slots() != best.slots) objective.place(best.slots);
  return best;
}

Annealed try_all(PlacementObjective& objective) {
  std::vector<int> slots(static_cast<std::size_t>(objective.num_units()));
  std::iota(slots.begin(), slots.end(), 0);
  objective.place(slots);
  Annealed best{slots, objective.value()};
  while (std::next_permutation(slots.begin(), slots.end())) {
    std::vector<std::pair<int, int>> changes;
    for (std::size_t unit = 0; unit < slots.size(); ++unit)
      if (slots[unit] != objective.slots()[unit])
        changes.emplace_back(static_cast<int>(unit), slots[unit]);
    objective.move(changes);
    if (objective.value() < best.value) best = {slots, objective.value()};
  }
  objective.place(best.slots);
  return best;
}

}  // namespace windtunnel
