#include "search/rank.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <variant>

#include "core/contracts.hpp"
#include "core/problem.hpp"
#include "memory/memory_advice.hpp"
#include "report/report_words.hpp"
#include "search/lower_bound.hpp"
#include "search/placement_search.hpp"
#include "simulate/memory_inputs.hpp"
#include "simulate/tasks.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

void place(const Scenario& base, const RankResult& result, RankedPlan& plan) {
  Scenario scenario = base;
  scenario.plan = std::get<Plan>(lay_out(base, result.space, plan.choice));
  PlacementResult found = search_placement(scenario, {.seed = base.seed});
  plan.placement_note = std::move(found.why);
  if (found.verdict != PlacementResult::Verdict::found) return;
  plan.choice.parallel.placement = std::move(found.placement);
  plan.time = found.simulated_after;
}

/// Passes of one replica, by which the times of simulations go.
double num_passes(const PlanChoice& choice) {
  const Parallel& parallel = choice.parallel;
  const int samples_at_once = choice.training.micro_batch * parallel.data;
  return static_cast<double>(choice.training.global_batch) / samples_at_once * parallel.pipeline *
         parallel.virtual_pipeline;
}

/// The search, one step of rank_plans() a function.
class Ranking {
 public:
  Ranking(const Scenario& base, const RankOptions& options)
      : base_(base),
        options_(options),
        objective_(base, base.search.objective, "/search/objective") {
    WT_EXPECT(options.top > 0 && options.at_once > 0);
    result_.space = search_space(base);
    result_.objective = objective_.objective();
    result_.objective_column = objective_.column();
  }

  RankResult rank() {
    const std::vector<PlanChoice> heads = enumerate_heads(base_, result_.space);
    std::vector<Considered> considered(heads.size());
    const auto consider_plans_of = [&](std::size_t head) {  // they place their ranks alike
      PlanMaker maker(base_.model, result_.space.cluster, base_.software, base_.plan.compression);
      InFlightTable in_flight;
      for (PlanChoice& choice : enumerate_plans(base_, result_.space, heads[head])) {
        ++considered[head].plans;
        consider(std::move(choice), maker, in_flight, considered[head]);
      }
    };
    run_on_threads(heads.size(), options_.at_once, consider_plans_of, {});
    for (Considered& each : considered) add(std::move(each));
    for (std::size_t i = 0; i < kernel_bounded_.size(); ++i) kernel_bounded_[i].order = i;
    std::ranges::sort(kernel_bounded_, {}, &KernelBoundedPlan::key);
    while (simulations_left() > 0) {
      bound_first(1);
      if (bounded_.empty() || is_decided()) break;
      simulate_batch();
    }
    conclude();
    return std::move(result_);
  }

 private:
  /// The smaller comes first: the bound of the objective, then the order of enumeration.
  using Key = std::pair<double, std::size_t>;

  /// A plan that fits, of which only the bound by its kernels is known.
  struct KernelBoundedPlan {
    RankedPlan plan;
    std::size_t order = 0;
    Key key() const { return {plan.least_penalty, order}; }
  };

  /// Bounds and counts of plans that are not simulated.
  struct Considered {
    std::size_t plans = 0, rejected_shape = 0, rejected_memory = 0;
    std::vector<KernelBoundedPlan> legal;
    std::optional<RejectedPlan> nearest;
  };

  void consider(PlanChoice choice, PlanMaker& maker, InFlightTable& in_flight,
                Considered& considered) const {
    auto laid_out = lay_out_as_tried(base_, result_.space, choice, maker);
    if (auto* rejections = std::get_if<std::vector<PlanRejection>>(&laid_out)) {
      ++considered.rejected_shape;
      if (!considered.nearest)
        considered.nearest = RejectedPlan{choice, std::move(*rejections), {}};
      return;
    }
    const Plan& plan = *std::get<const Plan*>(laid_out);
    const MemoryCheck memory =
        check_memory(base_, plan, base_.search.memory_margin, in_flight.of(plan));
    if (!memory.fits || memory.verdict > options_.gravest) {
      ++considered.rejected_memory;
      keep_nearest(considered.nearest, RejectedPlan{choice, {}, memory});
      return;
    }
    const Seconds bound = kernel_bound(inputs_of(plan));
    considered.legal.push_back({{choice,
                                 plan.microbatches,
                                 RankMethod::estimated,
                                 bound,
                                 bound,
                                 memory.max_total,
                                 memory.verdict,
                                 {},
                                 {},
                                 objective_.least_penalty(bound),
                                 objective_.least_penalty(bound)}});
  }

  BuildInputs inputs_of(const Plan& plan) const {
    return {&base_.model, &base_.platform, &base_.nodes, &base_.software, &plan};
  }

  void add(Considered considered) {
    result_.considered += considered.plans;
    result_.rejected_shape += considered.rejected_shape;
    result_.rejected_memory += considered.rejected_memory;
    std::move(considered.legal.begin(), considered.legal.end(),
              std::back_inserter(kernel_bounded_));
    if (considered.nearest) keep_nearest(nearest_, std::move(*considered.nearest));
  }

  /// One that can be laid out is nearer than any that cannot; of equals the first stays.
  static void keep_nearest(std::optional<RejectedPlan>& nearest, RejectedPlan other) {
    const auto miss = [](const RejectedPlan& plan) {
      return plan.memory->with_margin - plan.memory->worst.usable;
    };
    const bool is_nearer =
        !nearest || (other.memory && (!nearest->memory || miss(other) < miss(*nearest)));
    if (is_nearer) nearest = std::move(other);
  }

  bool is_full() const { return best_.size() >= static_cast<std::size_t>(options_.top); }
  /// Penalty below which a plan enters the table once it is full.
  double last_penalty() const { return best_[static_cast<std::size_t>(options_.top) - 1].penalty; }

  /// The last plan of the table is as fast as the next that could be simulated.
  bool is_decided() const {
    return is_full() &&
           (bounded_.empty() || bounded_.begin()->second.least_penalty >= last_penalty()) &&
           (next_kernel_bounded_ == kernel_bounded_.size() ||
            kernel_bounded_[next_kernel_bounded_].plan.least_penalty >= last_penalty());
  }

  /// Bounds plans with all that lower_bound() knows, best first, until the first `count` of those that are left are known, or none that is
  /// not bounded can enter the table. So most plans of a large search never are.
  void bound_first(std::size_t count) {
    constexpr std::size_t plans_of_thread = 4;  // between two looks at what is known
    const auto is_known = [&] {
      const Key next = kernel_bounded_[next_kernel_bounded_].key();
      if (is_full() && next.first >= last_penalty()) return true;
      return bounded_.size() >= count &&
             std::next(bounded_.begin(), static_cast<std::ptrdiff_t>(count) - 1)->first < next;
    };
    while (next_kernel_bounded_ < kernel_bounded_.size() && !is_known()) {
      const std::size_t batch = std::min(plans_of_thread * options_.at_once,
                                         kernel_bounded_.size() - next_kernel_bounded_);
      const auto bound_anew = [&](std::size_t i) {
        RankedPlan& plan = kernel_bounded_[next_kernel_bounded_ + i].plan;
        const Plan laid_out = std::get<Plan>(lay_out(base_, result_.space, plan.choice));
        plan.time = plan.bound = std::max(plan.bound, lower_bound(inputs_of(laid_out)));
        plan.penalty = plan.least_penalty = objective_.least_penalty(plan.bound);
      };
      run_on_threads(batch, options_.at_once, bound_anew, {});
      for (std::size_t i = 0; i < batch; ++i, ++next_kernel_bounded_) {
        KernelBoundedPlan& each = kernel_bounded_[next_kernel_bounded_];
        bounded_.emplace(each.key(), std::move(each.plan));
      }
    }
  }

  std::size_t simulations_left() const {
    return options_.budget ? *options_.budget - std::min(*options_.budget, result_.simulated)
                           : bounded_.size() + kernel_bounded_.size();
  }

  /// Plans that are to be simulated as the table is now: all that may enter it.
  std::size_t num_left() const {
    const auto rough = static_cast<std::size_t>(kernel_bounded_.end() - kernel_bounded_.begin()) -
                       next_kernel_bounded_;
    if (!is_full()) return bounded_.size() + rough;
    const auto worse = std::ranges::find_if(
        bounded_, [&](const auto& each) { return each.first.first >= last_penalty(); });
    return static_cast<std::size_t>(std::distance(bounded_.begin(), worse));
  }

  /// Simulates a batch, and takes the results in the order in which one core would have come to them: what it would not have
  /// simulated any more is dropped.
  void simulate_batch() {
    // Enough to fill the table, then those that may enter it. With more at once, cores wait less for the slowest, but it is known later
    // which plans need no simulation.
    constexpr std::size_t most_rounds = 5;  // between two reports of progress
    const auto top = static_cast<std::size_t>(options_.top);
    const std::size_t wanted = std::min(
        simulations_left(), std::clamp(best_.size() < top ? top - best_.size() : num_left(),
                                       options_.at_once, most_rounds * options_.at_once));
    bound_first(wanted);
    const std::size_t count = std::min(wanted, bounded_.size());
    std::vector<const PlanChoice*> choices;
    for (auto each = bounded_.begin(); choices.size() < count; ++each)
      choices.push_back(&each->second.choice);
    const std::vector<PlanFigures> simulated =
        simulate_plans(base_, result_.space, choices, options_.at_once);
    for (std::size_t i = 0; i < count; ++i) {
      if (is_full() && bounded_.begin()->first.first >= last_penalty()) break;
      add(simulated[i]);
    }
    if (options_.on_progress) options_.on_progress(progress());
  }

  void add(const PlanFigures& simulated) {
    RankedPlan plan = std::move(bounded_.begin()->second);
    bounded_.erase(bounded_.begin());
    ++result_.simulated;
    WT_ENSURE(plan.bound <= simulated.iteration_time);
    plan.method = RankMethod::simulated;
    plan.time = simulated.iteration_time;
    plan.memory_max = simulated.memory.max_total;
    plan.breakdown = simulated.breakdown;
    plan.penalty = objective_.penalty(plan.time, shares_of(plan.breakdown));
    const auto behind = std::ranges::upper_bound(best_, plan.penalty, {}, &RankedPlan::penalty);
    best_.insert(behind, std::move(plan));
  }

  RankProgress progress() const {
    RankProgress progress{result_.simulated, 0, std::nullopt};
    if (!best_.empty()) progress.best = best_.front().time;
    progress.left = num_left();
    return progress;
  }

  void conclude() {
    const auto top = static_cast<std::size_t>(options_.top);
    bound_first(std::max<std::size_t>(1, top - std::min(top, best_.size())));
    if (best_.empty() && bounded_.empty()) {
      result_.nearest = std::move(nearest_);
      return;
    }
    result_.table_is_proven =
        (bounded_.empty() && next_kernel_bounded_ == kernel_bounded_.size()) || is_decided();
    if (!best_.empty()) {
      const RankedPlan& best = best_.front();
      const bool is_proven =
          bounded_.empty() || bounded_.begin()->second.least_penalty >= best.penalty;
      result_.lower_bound =
          is_proven ? best.time : std::min(best.time, bounded_.begin()->second.bound);
      if (!is_proven)
        result_.gap =
            (best.penalty - bounded_.begin()->second.least_penalty) / std::abs(best.penalty);
    } else {
      result_.lower_bound = bounded_.begin()->second.bound;
      result_.gap = 1;
    }
    result_.plans = std::move(best_);
    for (auto& [key, plan] : bounded_) {
      if (result_.plans.size() >= top) break;
      result_.plans.push_back(std::move(plan));
    }
    if (result_.plans.size() > top) result_.plans.resize(top);
  }

  const Scenario& base_;
  const RankOptions& options_;
  ObjectiveValue objective_;
  RankResult result_;
  std::vector<KernelBoundedPlan>
      kernel_bounded_;  ///< by key; those before next_kernel_bounded_ are bounded
  std::size_t next_kernel_bounded_ = 0;
  std::map<Key, RankedPlan> bounded_;  ///< and not simulated
  std::vector<RankedPlan> best_;       ///< simulated, by time
  std::optional<RejectedPlan> nearest_;
};

}  // namespace

Scenario with_best_plan(Scenario scenario, const RankOptions& options, const char* asked_at) {
  scenario = on_segment_of_search(std::move(scenario));
  const bool surely = scenario.search.surely_fits;
  RankOptions sure = options;
  sure.gravest = MemoryVerdict::fits;
  RankResult result = rank_plans(scenario, sure);
  if (result.plans.empty() && !surely) result = rank_plans(scenario, options);
  if (result.plans.empty())
    throw InputError({{{},
                       asked_at,
                       std::string("no plan of the search ") +
                           (surely ? "is sure to fit" : "fits") + " on this cluster",
                       surely ? "use more nodes, or leave surely_fits out" : "use more nodes"}});
  return with_plan(std::move(scenario), result.space, result.plans.front().choice);
}

std::function<Scenario(Scenario)> plan_chooser(const char* asked_at) {
  return [asked_at](Scenario scenario) {
    return with_best_plan(std::move(scenario), {.top = 1}, asked_at);
  };
}

void place_ranked_plans(const Scenario& base, RankResult& result) {
  if (base.search.placement != PlacementChoice::search &&
      base.placement_request != PlacementRequest::search)
    return;
  for (RankedPlan& plan : result.plans) {
    const Parallel& parallel = plan.choice.parallel;
    const bool owners_broadcast = parallel.zero_stage == 1 && base.software.broadcast_tensors > 0;
    if (!plan.is_simulated() || owners_broadcast ||
        (parallel.zero_group > 0 && parallel.zero_stage < 3))  // unsupported_requests()
      continue;
    place(base, result, plan);
    ++result.placements_searched;
  }
  const ObjectiveValue objective(base, base.search.objective, "/search/objective");
  // The shares of waiting and communication are those of ranks on the GPUs in order.
  for (RankedPlan& plan : result.plans)
    plan.penalty = plan.is_simulated() ? objective.penalty(plan.time, shares_of(plan.breakdown))
                                       : plan.least_penalty;
  std::ranges::stable_sort(result.plans, [](const RankedPlan& a, const RankedPlan& b) {
    return std::pair(a.method, a.penalty) < std::pair(b.method, b.penalty);
  });
  if (result.placements_searched > 0)
    result.lower_bound = std::min(result.lower_bound, result.plans.front().time);
}

std::vector<PlanFigures> simulate_plans(const Scenario& base, const SearchSpace& space,
                                        const std::vector<const PlanChoice*>& choices,
                                        std::size_t at_once) {
  // Those that take longest first: so that threads end at about the same time.
  std::vector<std::size_t> order(choices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t i) { return num_passes(*choices[i]); });
  const auto outcomes = run_tasks<PlanFigures>(
      {.count = choices.size(), .at_once = at_once, .work = [&](std::size_t i) {
         return simulate_plan(base, std::get<Plan>(lay_out(base, space, *choices[order[i]])));
       }});
  std::vector<std::size_t> place(choices.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<PlanFigures> simulated;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (const auto* failure = std::get_if<ChildFailure>(&outcomes[place[i]])) {
      const std::string text = "plan " +
                               detail::plan_text(choices[i]->training, choices[i]->parallel) +
                               ": " + failure->text;
      if (failure->kind == FailureKind::environment) throw EnvironmentError(text);
      throw std::runtime_error(text);
    }
    simulated.push_back(std::get<PlanFigures>(outcomes[place[i]]));
  }
  return simulated;
}

MemoryCheck check_memory(const Scenario& base, const Plan& plan, const MemoryMargin& margin) {
  return check_memory(base, plan, margin, count_in_flight(plan));
}

MemoryCheck check_memory(const Scenario& base, const Plan& plan, const MemoryMargin& margin,
                         const InFlightOfStages& in_flight) {
  const MemoryInputs inputs = memory_inputs(base, plan, in_flight);
  MemoryCheck check;
  for (int s = 0; s < plan.parallel.pipeline; ++s) {
    // If a plan does not fit, the reserved memory of the other stages does not matter.
    const bool is_lost = check.verdict == MemoryVerdict::does_not_fit;
    const StageMemory stage =
        is_lost ? account_required(inputs, StageId{s}) : account_stage(inputs, StageId{s});
    const Bytes need = stage.required * (1 + margin.share) + margin.amount;
    check.verdict = std::max(check.verdict, stage.verdict);
    check.max_total = std::max(check.max_total, stage.total);
    if (s > 0 && need - stage.usable <= check.with_margin - check.worst.usable) continue;
    check.worst = stage;
    check.with_margin = need;
  }
  check.fits = check.with_margin <= check.worst.usable &&
               (!base.search.surely_fits || check.verdict == MemoryVerdict::fits);
  return check;
}

const InFlightOfStages& InFlightTable::of(const Plan& plan) {
  const OrderShape shape = order_shape(plan);
  const auto [place, is_new] =
      known_.try_emplace({plan.parallel.schedule.get(), shape.stages, shape.chunks,
                          shape.microbatches, plan.position_layers});
  if (is_new) place->second = count_in_flight(plan);
  return place->second;
}

std::string text_of(const MemoryCheck& check) {
  if (check.with_margin <= check.worst.usable)
    return std::string(check.verdict == MemoryVerdict::at_risk
                           ? "its memory is at risk"
                           : "its memory is at least what is counted") +
           ", and /search/surely_fits leaves such plans out";
  return "stage " + std::to_string(check.worst.stage.index()) + " needs " +
         to_text(check.worst.required) + " and a margin of " +
         to_text(check.with_margin - check.worst.required) + ", the GPU has " +
         to_text(check.worst.usable);
}

RankResult rank_plans(const Scenario& base, const RankOptions& options) {
  return Ranking(base, options).rank();
}

}  // namespace windtunnel
