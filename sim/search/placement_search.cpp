#include "search/placement_search.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/contracts.hpp"
#include "report/number_text.hpp"
#include "simulate/built_scenario.hpp"
#include "simulate/neighbours.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// Units that a reversed or moved run has at most, and places that it moves by: keeps a move cheap on large clusters.
constexpr std::size_t longest_run = 32;
/// Times the temperature falls.
constexpr int falls = 4;
/// Over which the temperature falls, and random moves it is taken from.
constexpr double last_temperature = 1e-3;
constexpr int sampled_moves = 64;

std::vector<int> nodes_of(const PlacementObjective& objective) {
  std::vector<int> nodes;
  for (int slot = 0; slot < objective.num_units(); ++slot) nodes.push_back(objective.node_of(slot));
  return nodes;
}

using Kind = PlacementTerm::Kind;

std::string rate_text(BytesPerSecond rate) { return fixed_text(rate / 1_GBps, 1) + " GB/s"; }

std::string text_of(const PlacementTerm& term, const PlacementObjective& before,
                    const PlacementObjective& after) {
  const std::string stage = "stage " + std::to_string(term.stage);
  const std::string who =
      term.kind == Kind::passes ? stage
      : term.kind == Kind::messages
          ? stage + "→" + std::to_string(before.target(term.stage, term.channel))
      : term.kind == Kind::ring ? "the gradient ring of " + stage
                                : "the synchronisation of embeddings";
  const std::string was = to_text(before.time_of(term)), is = to_text(after.time_of(term));
  if (term.kind == Kind::passes)
    return who + " moves to GPUs that take " + is + " a microbatch, from " + was;
  const auto old_link = before.slowest_link(term), new_link = after.slowest_link(term);
  if (!(old_link.bandwidth < new_link.bandwidth))  // links as slow, but with less on them
    return who + " takes " + is + " instead of " + was;
  return who + " leaves the " + rate_text(old_link.bandwidth) + " link " + old_link.link +
         (new_link.link.empty() ? " and stays inside nodes"
                                : "; its slowest is now " + rate_text(new_link.bandwidth));
}

/// The scenario with its ranks elsewhere; nothing else changes.
Scenario placed(const Scenario& scenario, const std::vector<int>& placement) {
  Scenario result = scenario;
  result.placement_request = PlacementRequest::as_planned;
  Parallel parallel = scenario.plan.parallel;
  parallel.placement = placement;
  ClusterShape cluster = first_nodes(scenario.platform, scenario.plan.num_nodes);
  cluster.nodes_given = true;
  auto made = make_plan(scenario.model, scenario.plan.training, parallel, cluster,
                        scenario.software, scenario.plan.compression);
  WT_ENSURE(std::holds_alternative<Plan>(made));
  result.plan = std::get<Plan>(std::move(made));
  return result;
}

PlanFigures simulated(const Scenario& scenario) { return simulate_plan(scenario, scenario.plan); }

std::string percent_less(Seconds before, Seconds after) {
  return percent_text((before - after) / before);
}

/// "3.4 % less", "0.2 % more"
std::string change_text(Seconds before, Seconds after) {
  return after <= before ? percent_less(before, after) + " less"
                         : percent_text((after - before) / before) + " more";
}

/// Why a placement with a better estimate is not taken after all; empty when it is.
std::string why_not(const PlacementResult& result, const PlanFigures& before,
                    const PlanFigures& after) {
  if (before.memory.fits && !after.memory.fits)
    return "the best that was found does not fit in memory";
  if (after.memory.fits && !before.memory.fits) return {};
  if (after.iteration_time < before.iteration_time) return {};
  return "the best that was found is " +
         percent_less(result.estimate_before, result.estimate_after) +
         " faster by estimate, but not when simulated";
}

/// Estimates closer than this are the same: what sums in another order differ by.
constexpr double same = 1e-9;

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
  Seconds sum{};  // of the costs of random moves, without moves that gain
  int losses = 0;
  for (int i = 0; i < sampled_moves; ++i) {
    objective.move(moves.draw(objective.slots()));
    const Seconds loss = objective.value() - best.value;
    objective.undo();
    if (loss <= Seconds{0}) continue;
    sum += loss;
    ++losses;
  }
  const Seconds hottest = losses == 0 ? Seconds{0} : sum / static_cast<double>(losses);
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

std::string why_better(const PlacementObjective& before, const PlacementObjective& after) {
  const std::vector<PlacementTerm> terms = before.terms();
  const auto loss = [&](const PlacementTerm& term) {
    return std::pair{after.value_with(term, before) - after.value(),
                     before.time_of(term) - after.time_of(term)};
  };
  const PlacementTerm* most = &terms.front();
  auto most_loss = loss(*most);
  for (const PlacementTerm& term : terms) {
    const auto of_term = loss(term);
    if (of_term > most_loss) most = &term, most_loss = of_term;
  }
  return text_of(*most, before, after);
}

std::vector<int> placement_of(const Plan& plan, const std::vector<int>& slots) {
  std::vector<int> placement(static_cast<std::size_t>(plan.num_ranks()));
  for (std::size_t unit = 0; unit < plan.devices.size(); ++unit) {
    const PlanDevice& device = plan.devices[unit];
    const PlanDevice& place = plan.devices[static_cast<std::size_t>(slots[unit])];
    const int first = static_cast<int>(place.node.index()) * plan.gpus_per_node;
    for (std::size_t i = 0; i < device.ranks.size(); ++i)
      placement[device.ranks[i].index()] = first + place.gpus[i];
  }
  return placement;
}

PlacementResult search_placement(const Scenario& scenario, const PlacementOptions& options) {
  PlacementObjective objective(scenario);
  const PlacementObjective before_search = objective;
  PlacementResult result;
  result.placement = placement_of(scenario.plan, objective.slots());
  result.estimate_before = objective.value();
  const Annealed best = anneal(objective, {options.moves, options.seed});
  result.estimate_after = best.value;
  const PlanFigures before = simulated(placed(scenario, result.placement));
  result.simulated_before = result.simulated_after = before.iteration_time;
  const Parallel& own = scenario.plan.parallel;
  const std::string own_name = !own.placement.empty() ? "the placement given"
                               : own.rank_order == default_rank_order
                                   ? "Megatron's order"
                                   : "the order " + text_of(own.rank_order);
  if (best.value >= result.estimate_before * (1 - same)) {
    result.why = "nothing better than " + own_name + " was found";
    return result;
  }
  const std::vector<int> found = placement_of(scenario.plan, best.slots);
  const PlanFigures after = simulated(placed(scenario, found));
  result.simulated_after = after.iteration_time;
  if (const std::string fault = why_not(result, before, after); !fault.empty()) {
    result.why = fault + "; " + own_name + " is kept";
    return result;
  }
  result.verdict = PlacementResult::Verdict::found;
  result.placement = found;
  result.why = after.memory.fits && !before.memory.fits
                   ? "every stage is on GPUs whose memory it fits in, unlike in " + own_name
                   : why_better(before_search, objective);
  result.why += " (" + to_text(before.iteration_time) + " in " + own_name + ", " +
                change_text(before.iteration_time, after.iteration_time) + ")";
  return result;
}

Scenario with_placement(const Scenario& scenario, const PlacementResult& result) {
  const bool found = result.verdict == PlacementResult::Verdict::found;
  Scenario changed = scenario;
  if (found) changed = placed(scenario, result.placement);
  changed.placement_request = PlacementRequest::as_planned;
  changed.placement_note = result.why;
  Origin origin;
  origin.kind = OriginKind::searched;
  JsonValue value(std::string("megatron"), origin);
  if (found) {
    JsonValue::Array places;
    for (const GpuPlace& place : changed.plan.places)
      places.emplace_back(std::to_string(place.node.index()) + ":" + std::to_string(place.gpu),
                          origin);
    value = JsonValue(std::move(places), origin);
  }
  if (found || scenario.placement_request == PlacementRequest::search) {
    const bool is_set = set_at(changed.resolved, "/parallel/placement", std::move(value));
    WT_ENSURE(is_set);
  }
  return changed;
}

Scenario prepare_scenario(Scenario scenario) {
  scenario = with_neighbours(std::move(scenario));
  if (scenario.placement_request != PlacementRequest::search) return scenario;
  scenario = with_placement(scenario, search_placement(scenario, {.seed = scenario.seed}));
  if (!scenario.neighbour_costs.empty()) scenario.time_alone = time_alone(scenario);
  return scenario;
}

}  // namespace windtunnel
