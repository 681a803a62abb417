#include "lower/stage_choice.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

namespace windtunnel {
namespace {

/// Two iteration times this close are the same: rounding of many additions.
constexpr double same = 1e-9;

/// By stage: true if its gradients are compressed.
using Stages = std::vector<bool>;

/// End of an iteration.
struct End {
  Seconds iteration;
  std::vector<Seconds> stages;  ///< the last device of each
};

class StageSearch {
 public:
  explicit StageSearch(const BuildInputs& inputs)
      : inputs_(inputs), num_stages_(static_cast<std::size_t>(inputs.plan->parallel.pipeline)) {}

  Stages best() {
    const Stages none(num_stages_, false), all(num_stages_, true);
    best_ = none;
    least_ = end_of(none).iteration;
    take_if_less(all);
    take_if_less(late_without(end_of(none).stages, end_of(all).stages));
    while (change_one() || drop_one()) continue;
    return best_;
  }

  Compression with(const Stages& stages) const {
    Compression compression = inputs_.plan->compression;
    compression.gradient_stages.kind = CompressedStages::Kind::listed;
    compression.gradient_stages.listed.clear();
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
      if (stages[stage]) compression.gradient_stages.listed.push_back(static_cast<int>(stage));
    return compression;
  }

 private:
  /// Stages reduce on their own, but for the embedding that the first shares with the last. So no choice ends before the stage
  /// whose better end is last, and only stages that miss that end uncompressed need the codec.
  Stages late_without(const std::vector<Seconds>& none, const std::vector<Seconds>& all) const {
    Seconds soonest{};
    for (std::size_t stage = 0; stage < num_stages_; ++stage)
      soonest = std::max(soonest, std::min(none[stage], all[stage]));
    Stages late(num_stages_);
    for (std::size_t stage = 0; stage < num_stages_; ++stage)
      late[stage] = none[stage] > soonest * (1 + same);
    return late;
  }

  bool take_if_less(const Stages& stages) {
    const Seconds time = end_of(stages).iteration;
    if (time >= least_ * (1 - same)) return false;
    best_ = stages;
    least_ = time;
    return true;
  }

  Stages with_other(std::size_t stage) const {
    Stages stages = best_;
    stages[stage] = !stages[stage];
    return stages;
  }

  /// One stage more, or one less, that takes less time.
  bool change_one() {
    for (std::size_t stage = 0; stage < num_stages_; ++stage)
      if (take_if_less(with_other(stage))) return true;
    return false;
  }

  /// One stage less that takes no more, the last first.
  bool drop_one() {
    for (std::size_t stage = num_stages_; stage-- > 0;) {
      if (!best_[stage]) continue;
      const Stages fewer = with_other(stage);
      if (end_of(fewer).iteration > least_ * (1 + same)) continue;
      best_ = fewer;
      return true;
    }
    return false;
  }

  const End& end_of(const Stages& stages) {
    const auto [found, is_new] = ends_.try_emplace(stages);
    if (is_new) found->second = simulate(stages);
    return found->second;
  }

  End simulate(const Stages& stages) const {
    Plan plan = *inputs_.plan;
    plan.compression = with(stages);
    BuildInputs tried = inputs_;
    tried.plan = &plan;
    const EngineResult result = simulate_programs(build_programs(tried), make_heap_engine);
    End end{result.end, std::vector<Seconds>(num_stages_)};
    for (std::size_t device = 0; device < plan.devices.size(); ++device) {
      Seconds& last = end.stages[plan.devices[device].stage.index()];
      last = std::max(last, result.device_end[device]);
    }
    return end;
  }

  const BuildInputs inputs_;
  const std::size_t num_stages_;
  std::map<Stages, End> ends_;  ///< of what was tried
  Stages best_;
  Seconds least_;
};

bool leaves_stages_open(const Plan& plan) {
  return plan.compression.data_gradients &&
         plan.compression.gradient_stages.kind == CompressedStages::Kind::automatic;
}

}  // namespace

Compression with_stages_chosen(const BuildInputs& inputs) {
  if (!leaves_stages_open(*inputs.plan)) return inputs.plan->compression;
  StageSearch search(inputs);
  return search.with(search.best());
}

PlanWithStages::PlanWithStages(const BuildInputs& inputs) : given_(inputs.plan) {
  if (!leaves_stages_open(*given_)) return;
  chosen_ = *given_;
  chosen_->compression = with_stages_chosen(inputs);
}

}  // namespace windtunnel
