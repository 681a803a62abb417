#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/enum_names.hpp"
#include "report/ordering.hpp"
#include "scenario/scenario.hpp"
#include "schedule/in_flight.hpp"
#include "search/search_space.hpp"
#include "simulate/built_scenario.hpp"
#include "simulate/objective_value.hpp"

namespace windtunnel {

/// Memory check of a plan, which may be recommended only if it fits: the need of its fullest stage against its GPU's memory.
struct MemoryCheck {
  bool fits = false;
  StageMemory worst;    ///< the stage with the least room, or that misses by the most
  Bytes with_margin{};  ///< what it needs, margin included
  MemoryVerdict verdict = MemoryVerdict::fits;  ///< of all stages, without the margin
  Bytes max_total{};  ///< what nvidia-smi would show on the fullest GPU, if it fits
};

/// The memory account of the plan (docs/memory.md):
///   fits  =  required * (1 + share) + amount <= usable   on every stage, and where the search asks for it (SearchBlock::surely_fits) surely
MemoryCheck check_memory(const Scenario& base, const Plan& plan, const MemoryMargin& margin);

/// The same, with what is in flight known.
MemoryCheck check_memory(const Scenario& base, const Plan& plan, const MemoryMargin& margin,
                         const InFlightOfStages& in_flight);

/// Microbatches in flight of plans with as many stages, counted once for those of one order of passes.
class InFlightTable {
 public:
  const InFlightOfStages& of(const Plan& plan);

 private:
  /// The schedule, stages, chunks, microbatches, and the layers of chunks that are not alike.
  std::map<std::tuple<const Schedule*, int, int, int, std::vector<int>>, InFlightOfStages> known_;
};

/// "stage 0 needs 83.1 GiB and a margin of 4.2 GiB, the GPU has 79.2 GiB".
std::string text_of(const MemoryCheck& check);

/// Source of a ranked plan's time.
enum class RankMethod { simulated, estimated };

/// Progress of a search, for a progress bar.
struct RankProgress {
  std::size_t simulated = 0;
  std::size_t left = 0;  ///< plans that the bound has not ruled out so far
  std::optional<Seconds> best;
};

struct RankOptions {
  int top = 10;
  std::optional<std::size_t> budget = {};  ///< simulations at most
  std::size_t at_once = 1;                 ///< simulations at the same time; changes no result
  std::function<void(const RankProgress&)> on_progress = {};
  /// Plans with a graver verdict on memory are rejected.
  MemoryVerdict gravest = MemoryVerdict::lower_bound;
};

/// A plan in the order of the objective: of its time, unless the search block asks for another.
struct RankedPlan {
  PlanChoice choice;
  int microbatches = 0;  ///< of one pipeline
  RankMethod method = RankMethod::simulated;
  Seconds time{};   ///< of an iteration; estimated: its lower bound
  Seconds bound{};  ///< the lower bound
  Bytes memory_max{};
  MemoryVerdict memory_verdict = MemoryVerdict::fits;
  Breakdown breakdown;         ///< simulated plans only
  std::string placement_note;  ///< where its placement was searched: what was found, in one line
  double penalty = 0, least_penalty = 0;  ///< of the objective, and its lower bound
  // Error bounds of simulated plans, if there is evidence (judge_plans()).
  std::optional<std::pair<Seconds, Seconds>> interval = {};  ///< of `time`, 90 %
  std::optional<Ordering> against_best = {};                 ///< ranked by time, and not the best
  std::size_t place = 0;  ///< from 1, shared by plans that cannot be distinguished; 0: not judged

  bool is_simulated() const { return method == RankMethod::simulated; }
  bool surely_fits() const { return memory_verdict == MemoryVerdict::fits; }
};

/// Why a plan is not ranked: it cannot be laid out, or not be held.
struct RejectedPlan {
  PlanChoice choice;
  std::vector<PlanRejection> shape;
  std::optional<MemoryCheck> memory;
};

/// Nodes that no plan of a search has.
struct AvoidedNodes {
  std::vector<std::string> names;  ///< as they were named: "node3", "leaf1"
  std::vector<int> nodes;          ///< which these are, in order
  std::optional<Seconds>
      best_of_all;  ///< time of the best plan with nothing avoided, where one fits
};

/// Result of a search.
struct RankResult {
  SearchSpace space;
  Objective objective = Objective::time;
  ObjectiveColumn objective_column;
  std::size_t considered = 0, rejected_shape = 0, rejected_memory = 0;
  std::size_t simulated = 0;
  std::vector<RankedPlan> plans;  ///< the best first, at most RankOptions::top; estimated ones last
  /// Simulated, the plan ranked first, if nothing better is left; else no plan of the space is faster than this.
  Seconds lower_bound{};
  /// Most that a plan which was not simulated can gain, as a share of the best plan's objective; 0: nothing better is left.
  double gap = 0;
  std::size_t placements_searched =
      0;                         ///< plans of the table whose placement was searched after all that
  bool table_is_proven = false;  ///< no plan that is not in the table is faster than one in it
  std::optional<RejectedPlan> nearest;  ///< when nothing fits: what misses by the least
  std::optional<AvoidedNodes> avoided = {};
  std::string interval_warning = {};  ///< of the best plan's interval; empty: nothing to say
  /// The best plan that surely fits, where no plan of the table does and one exists.
  std::optional<RankedPlan> surest_below = {};
};

/// Ranks the plans of the space around `base`: lays each out, rejects by shape and memory, orders the rest by lower bound of the objective, and
/// simulates best-first until the bound of what is left is no better than the last plan of the table, or the budget ends.
/// Equal times and bounds keep the order of enumeration, so the result is the same on any number of cores.
RankResult rank_plans(const Scenario& base, const RankOptions& options);

/// Simulates plans of one scenario, several at once (run_tasks): an exception with the plan's name when one failed.
std::vector<PlanFigures> simulate_plans(const Scenario& base, const SearchSpace& space,
                                        const std::vector<const PlanChoice*>& choices,
                                        std::size_t at_once);

/// Searches a placement, if the search or the file's own plan asks for one, for each simulated plan of the table (search_placement, with
/// the scenario's seed), takes those that simulate faster, and orders the table anew. The bound and the proof hold for ranks on the GPUs in order: how fast a plan could be on any
/// placement nobody knows.
void place_ranked_plans(const Scenario& base, RankResult& result);

/// The scenario with the plan in place of its own, in its resolved text too, from which evidence and pages take the plan's choices.
Scenario with_plan(Scenario scenario, const SearchSpace& space, const PlanChoice& choice);

/// The scenario with the plan that rank_plans() puts first of those that are sure to fit, or where there is none, of all. InputError, of
/// `asked_at`, where none fits.
Scenario with_best_plan(Scenario scenario, const RankOptions& options, const char* asked_at);

/// with_best_plan() for the points of a sweep, one thread each.
std::function<Scenario(Scenario)> plan_chooser(const char* asked_at);

}  // namespace windtunnel
