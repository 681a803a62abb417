#include "search/rank.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/contracts.hpp"
#include "search/lower_bound.hpp"

namespace windtunnel {
namespace {

/// The search, one step of rank_plans() a function.
class Ranking {
 public:
  Ranking(const Scenario& base, const RankOptions& options)
      : base_(base),
        options_(options),
        objective_(base, base.search.objective, "/search/objective") {
    WT_EXPECT(options.top > 0 && options.at_once > 0);
    result_.space = search_space(base);
    result_.engine = options.engine;
    result_.objective = objective_.objective();
    result_.objective_column = objective_.column();
  }

  RankResult rank() {
    const std::vector<PlanChoice> choices = enumerate_plans(base_, result_.space);
    const std::vector<std::size_t> begins = begins_of_groups(choices);
    std::vector<Considered> considered(choices.size());
    const auto consider_group = [&](std::size_t group) {
      PlanMaker maker(base_.model, result_.space.cluster, base_.software);
      InFlightTable in_flight;
      for (std::size_t i = begins[group]; i < begins[group + 1]; ++i)
        considered[i] = consider(choices[i], maker, in_flight);
    };
    run_on_threads(begins.size() - 1, options_.at_once, consider_group, {});
    for (std::size_t i = 0; i < choices.size(); ++i) add(choices[i], std::move(considered[i]));
    std::stable_sort(legal_.begin(), legal_.end(), [](const RankedPlan& a, const RankedPlan& b) {
      return a.least_penalty < b.least_penalty;
    });
    while (next_ < legal_.size() && !is_decided() && simulations_left() > 0) simulate_batch();
    conclude();
    return std::move(result_);
  }

 private:
  /// What is known of a plan that is not played.
  struct Considered {
    std::vector<PlanRejection> rejections;  ///< it cannot be laid out; nothing else is known then
    MemoryCheck memory;
    Seconds bound{};  ///< of a plan that fits
    int microbatches = 0;
  };

  /// Where choices begin that place their ranks as those behind them, a few at a time, and the end: what one thread considers at a
  /// time.
  static std::vector<std::size_t> begins_of_groups(const std::vector<PlanChoice>& choices) {
    constexpr std::size_t largest_group = 24;  // making a layout again costs less than waiting
    const auto ways = [&](std::size_t i) {
      const Parallel& parallel = choices[i].parallel;
      return std::tuple(parallel.tensor, parallel.pipeline, parallel.data);
    };
    std::vector<std::size_t> begins{0};
    for (std::size_t i = 1; i < choices.size(); ++i)
      if (ways(i) != ways(i - 1) || i - begins.back() == largest_group) begins.push_back(i);
    begins.push_back(choices.size());
    return begins;
  }

  Considered consider(const PlanChoice& choice, PlanMaker& maker, InFlightTable& in_flight) const {
    Considered considered;
    auto laid_out = lay_out(base_, result_.space, choice, maker);
    if (auto* rejections = std::get_if<std::vector<PlanRejection>>(&laid_out)) {
      considered.rejections = std::move(*rejections);
      return considered;
    }
    const Plan& plan = *std::get<const Plan*>(laid_out);
    considered.memory = check_memory(base_, plan, base_.search.memory_margin, in_flight.of(plan));
    considered.microbatches = plan.microbatches;
    if (considered.memory.fits)
      considered.bound = lower_bound(
          {&base_.model, &base_.platform, &base_.nodes, &base_.software, &plan}, options_.engine);
    return considered;
  }

  void add(const PlanChoice& choice, Considered considered) {
    ++result_.considered;
    const MemoryCheck& memory = considered.memory;
    if (!considered.rejections.empty()) {
      ++result_.rejected_shape;
      if (!nearest_) nearest_ = RejectedPlan{choice, std::move(considered.rejections), {}};
    } else if (!memory.fits) {
      ++result_.rejected_memory;
      keep_nearest(choice, memory);
    } else {
      legal_.push_back({choice,
                        considered.microbatches,
                        RankMethod::estimated,
                        considered.bound,
                        considered.bound,
                        memory.max_total,
                        memory.verdict,
                        {},
                        {},
                        objective_.least_penalty(considered.bound),
                        objective_.least_penalty(considered.bound)});
    }
  }

  static Bytes miss(const MemoryCheck& memory) { return memory.with_margin - memory.worst.usable; }
  void keep_nearest(const PlanChoice& choice, const MemoryCheck& memory) {
    const bool is_nearer = !nearest_ || !nearest_->memory || miss(memory) < miss(*nearest_->memory);
    if (is_nearer) nearest_ = RejectedPlan{choice, {}, memory};
  }

  /// The last plan of the table is as fast as anything that is left.
  bool is_decided() const {
    const auto top = static_cast<std::size_t>(options_.top);
    return best_.size() >= top && legal_[next_].least_penalty >= best_[top - 1].penalty;
  }

  std::size_t simulations_left() const {
    return options_.budget ? *options_.budget - std::min(*options_.budget, result_.simulated)
                           : legal_.size();
  }

  /// Plans that are to be simulated as the table is now: all that may enter it.
  std::size_t num_left() const {
    const auto top = static_cast<std::size_t>(options_.top);
    if (best_.size() < top) return legal_.size() - next_;
    const auto enters = [&](const RankedPlan& plan) {
      return plan.least_penalty < best_[top - 1].penalty;
    };
    const auto first = legal_.begin() + static_cast<std::ptrdiff_t>(next_);
    return static_cast<std::size_t>(std::count_if(first, legal_.end(), enters));
  }

  /// What fills the table, then what may enter it: the more at once, the less cores wait for the slowest, but the later is known
  /// what need not be simulated.
  std::size_t batch_size() const {
    constexpr std::size_t most_rounds = 5;  // between two reports of progress
    const auto top = static_cast<std::size_t>(options_.top);
    const std::size_t wanted = best_.size() < top ? top - best_.size() : num_left();
    const std::size_t count = std::clamp(wanted, options_.at_once, most_rounds * options_.at_once);
    return std::min({count, legal_.size() - next_, simulations_left()});
  }

  /// Simulates a batch, and takes the results in the order in which one core would have come to them: what it would not have
  /// simulated any more is dropped.
  void simulate_batch() {
    const std::size_t count = batch_size();
    std::vector<const PlanChoice*> choices;
    for (std::size_t i = 0; i < count; ++i) choices.push_back(&legal_[next_ + i].choice);
    const std::vector<SimulatedPlan> simulated =
        simulate_plans(base_, result_.space, choices, options_.at_once, options_.engine);
    for (std::size_t i = 0; i < count && !is_decided(); ++i) add(simulated[i]);
    if (options_.on_progress) options_.on_progress(progress());
  }

  void add(const SimulatedPlan& simulated) {
    RankedPlan plan = std::move(legal_[next_++]);
    ++result_.simulated;
    WT_ENSURE(plan.bound <= simulated.figures.iteration_time);
    plan.method = RankMethod::simulated;
    plan.time = simulated.figures.iteration_time;
    plan.memory_max = simulated.figures.memory_max;
    plan.breakdown = simulated.breakdown;
    plan.penalty = objective_.penalty(plan.time, shares_of(plan.breakdown));
    const auto behind = std::upper_bound(
        best_.begin(), best_.end(), plan.penalty,
        [](double penalty, const RankedPlan& other) { return penalty < other.penalty; });
    best_.insert(behind, std::move(plan));
  }

  RankProgress progress() const {
    RankProgress progress{result_.simulated, 0, std::nullopt};
    if (!best_.empty()) progress.best = best_.front().time;
    progress.left = num_left();
    return progress;
  }

  void conclude() {
    if (legal_.empty()) {
      result_.nearest = std::move(nearest_);
      return;
    }
    const bool all = next_ == legal_.size();
    result_.table_is_proven = all || is_decided();
    if (!best_.empty()) {
      const RankedPlan& best = best_.front();
      const bool is_proven = all || legal_[next_].least_penalty >= best.penalty;
      result_.lower_bound = is_proven ? best.time : std::min(best.time, legal_[next_].bound);
      if (!is_proven)
        result_.gap = (best.penalty - legal_[next_].least_penalty) / std::abs(best.penalty);
    } else {
      result_.lower_bound = legal_.front().bound;
      result_.gap = 1;
    }
    result_.plans = std::move(best_);
    const auto top = static_cast<std::size_t>(options_.top);
    for (; result_.plans.size() < top && next_ < legal_.size(); ++next_)
      result_.plans.push_back(std::move(legal_[next_]));
    if (result_.plans.size() > top) result_.plans.resize(top);
  }

  const Scenario& base_;
  const RankOptions& options_;
  ObjectiveValue objective_;
  RankResult result_;
  std::vector<RankedPlan> legal_;  ///< by bound; those before next_ are simulated
  std::size_t next_ = 0;
  std::vector<RankedPlan> best_;  ///< simulated, by time
  std::optional<RejectedPlan> nearest_;
};

}  // namespace

const char* name_of(RankMethod method) {
  return method == RankMethod::simulated ? "simulated" : "estimated";
}

RankResult rank_plans(const Scenario& base, const RankOptions& options) {
  return Ranking(base, options).rank();
}

}  // namespace windtunnel
