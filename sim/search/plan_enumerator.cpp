#include "search/plan_enumerator.hpp"

#include <cstdint>
#include <utility>

namespace windtunnel {
namespace {

/// The combinations of the space one key after the other.
class Enumeration {
 public:
  Enumeration(const Scenario& base, const SearchSpace& space) : base_(base), space_(space) {}

  std::vector<PlanChoice> all() {
    PlanChoice choice{base_.plan.training, base_.plan.parallel};
    for (const int tensor : space_.tensor) {
      for (const int pipeline : space_.pipeline) {
        choice.parallel.tensor = tensor;
        choice.parallel.pipeline = pipeline;
        add_data(choice);
      }
    }
    return std::move(choices_);
  }

 private:
  void add_data(PlanChoice choice) {
    for (const int data : data_ways(choice.parallel)) {
      choice.parallel.data = data;
      for (const int micro_batch : space_.micro_batch) {
        choice.training.micro_batch = micro_batch;
        add_schedules(choice);
      }
    }
  }

  std::vector<int> data_ways(const Parallel& parallel) const {
    if (!space_.data.empty()) return space_.data;
    const std::int64_t ways = std::int64_t{parallel.tensor} * parallel.pipeline;
    return {space_.gpus % ways == 0 ? static_cast<int>(space_.gpus / ways) : 0};
  }

  void add_schedules(PlanChoice choice) {
    for (const int chunks : space_.virtual_pipeline) {
      choice.parallel.virtual_pipeline = chunks;
      for (const SchedulePtr& schedule : schedules(chunks)) {
        choice.parallel.schedule = schedule;
        keep_stage_layers(choice.parallel);
        add_sharding(choice);
      }
    }
  }

  /// Several chunks need a schedule for them: where none is asked for, they get the default one; one chunk is no schedule of several.
  std::vector<SchedulePtr> schedules(int chunks) const {
    if (!space_.schedule.empty()) return space_.schedule;
    const SchedulePtr& given = base_.plan.parallel.schedule;
    const bool is_searched = chunks != base_.plan.parallel.virtual_pipeline;
    if (!is_searched || given->written) return {given};
    const bool is_for_several = given->takes(2);
    return {is_for_several == (chunks > 1) ? given : default_schedule(chunks)};
  }

  /// The file's own stage_layers are for its own number of stages; others are laid out evenly.
  void keep_stage_layers(Parallel& parallel) const {
    const Parallel& written = base_.plan.parallel;
    parallel.stage_layers =
        parallel.pipeline == written.pipeline ? written.stage_layers : std::vector<int>{};
  }

  void add_sharding(PlanChoice choice) {
    for (const Recompute recompute : space_.recompute) {
      choice.training.recompute = recompute;
      for (const bool sequence_parallel : space_.sequence_parallel) {
        choice.parallel.sequence_parallel = sequence_parallel;
        if (choice.parallel.tensor == 1 && sequence_parallel != space_.sequence_parallel.front())
          continue;
        for (const int zero_stage : space_.zero_stage) {
          choice.parallel.zero_stage = zero_stage;
          choice.parallel.zero_group = zero_stage == 3 ? base_.plan.parallel.zero_group : 0;
          if (choice.parallel.data == 1 && zero_stage != space_.zero_stage.front()) continue;
          choices_.push_back(choice);
        }
      }
    }
  }

  const Scenario& base_;
  const SearchSpace& space_;
  std::vector<PlanChoice> choices_;
};

std::string text(std::int64_t number) { return std::to_string(number); }

/// What must hold before products of these numbers can be trusted.
std::vector<PlanRejection> reject_products(const Scenario& base, const SearchSpace& space,
                                           const PlanChoice& choice) {
  const Parallel& parallel = choice.parallel;
  const std::int64_t ways = std::int64_t{parallel.tensor} * parallel.pipeline;
  if (parallel.data == 0)
    return {{"/parallel",
             "tensor * pipeline = " + text(parallel.tensor) + " * " + text(parallel.pipeline) +
                 " = " + text(ways) + " does not divide the " + text(space.gpus) + " GPUs",
             {}}};
  if (ways > space.gpus || ways * parallel.data != space.gpus)
    return {{"/parallel",
             "tensor * pipeline * data = " + text(parallel.tensor) + " * " +
                 text(parallel.pipeline) + " * " + text(parallel.data) + " is not " +
                 text(space.gpus) + ", the number of GPUs",
             space.gpus % ways == 0 ? "data " + text(space.gpus / ways) + " would use them all"
                                    : std::string{}}};
  const std::int64_t round = std::int64_t{parallel.data} * choice.training.micro_batch;
  if (round > base.plan.training.global_batch)
    return {{"/training/micro_batch",
             "data * micro_batch = " + text(parallel.data) + " * " +
                 text(choice.training.micro_batch) + " = " + text(round) +
                 " is more than the global batch of " + text(base.plan.training.global_batch),
             {}}};
  return {};
}

}  // namespace

std::vector<PlanChoice> enumerate_plans(const Scenario& base, const SearchSpace& space) {
  return Enumeration(base, space).all();
}

std::variant<Plan, std::vector<PlanRejection>> lay_out(const Scenario& base,
                                                       const SearchSpace& space,
                                                       const PlanChoice& choice) {
  auto rejections = reject_products(base, space, choice);
  if (!rejections.empty()) return rejections;
  return make_plan(base.model, choice.training, choice.parallel, space.cluster, base.software);
}

std::string text_of(const PlanChoice& choice, const Scenario& base) {
  const Parallel& parallel = choice.parallel;
  const Parallel& written = base.plan.parallel;
  const SearchBlock& block = base.search;
  std::string line = "tensor " + text(parallel.tensor) + " · pipeline " + text(parallel.pipeline) +
                     (parallel.data == 0 ? "" : " · data " + text(parallel.data)) +
                     " · micro_batch " + text(choice.training.micro_batch);
  const auto add = [&line](bool is_of_interest, const std::string& what) {
    if (is_of_interest) line += " · " + what;
  };
  add(block.virtual_pipeline.size() > 1 || parallel.virtual_pipeline != written.virtual_pipeline,
      "virtual_pipeline " + text(parallel.virtual_pipeline));
  add(block.schedule.size() > 1 || parallel.schedule != written.schedule, parallel.schedule->name);
  add(block.recompute.size() > 1 || choice.training.recompute != base.plan.training.recompute,
      std::string("recompute ") + name_of(choice.training.recompute));
  add(block.sequence_parallel.size() > 1 || parallel.sequence_parallel != written.sequence_parallel,
      std::string("sequence_parallel ") + (parallel.sequence_parallel ? "true" : "false"));
  add(block.zero_stage.size() > 1 || parallel.zero_stage != written.zero_stage,
      "zero_stage " + text(parallel.zero_stage));
  return line;
}

}  // namespace windtunnel
