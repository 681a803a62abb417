#include "search/plan_enumerator.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include "plan/plan_check.hpp"

namespace windtunnel {
namespace {

/// The combinations of the space one key after the other.
class Enumeration {
 public:
  Enumeration(const Scenario& base, const SearchSpace& space) : base_(base), space_(space) {}

  std::vector<PlanChoice> all() {
    vary(0, {base_.plan.training, base_.plan.parallel});
    return std::move(choices_);
  }

 private:
  /// Adds the choices that differ from `choice` in the keys from this one on.
  void vary(std::size_t place, PlanChoice choice) {
    if (place == space_.values.size()) return add(std::move(choice));
    const SearchKey& searched = search_keys()[place];
    const std::vector<int>& values = space_.values[place];
    if (values.empty()) {
      derive(searched.key->pointer, choice.parallel);
      return vary(place + 1, std::move(choice));
    }
    if (values.size() == 1) {
      searched.key->value.set(choice, values.front());
      return vary(place + 1, std::move(choice));
    }
    for (const int value : values) {
      searched.key->value.set(choice, value);
      vary(place + 1, choice);
      if (searched.matters && !searched.matters(choice.parallel)) break;
    }
  }

  /// What is not searched and follows from what has been chosen.
  void derive(const std::string& pointer, Parallel& parallel) const {
    if (pointer == plan_keys::data) {
      const std::int64_t ways = parallel.model_ranks();
      parallel.data = space_.gpus % ways == 0 ? static_cast<int>(space_.gpus / ways) : 0;
    } else if (pointer == plan_keys::schedule) {
      parallel.schedule = schedule_for(parallel.virtual_pipeline);
    }
  }

  /// Several chunks need a schedule for them: where none is asked for, they get the default one; one chunk is no schedule of several.
  SchedulePtr schedule_for(int chunks) const {
    const SchedulePtr& given = base_.plan.parallel.schedule;
    const bool is_searched = chunks != base_.plan.parallel.virtual_pipeline;
    if (!is_searched || given->written) return given;
    const bool is_for_several = given->takes(2);
    const bool fits = given->takes(chunks) && is_for_several == (chunks > 1);
    return fits ? given : default_schedule(chunks);
  }

  void add(PlanChoice choice) {
    const Parallel& written = base_.plan.parallel;
    Parallel& parallel = choice.parallel;
    // The file's own stage_layers are for its own number of stages; others are laid out evenly.
    const bool same = parallel.pipeline == written.pipeline;
    const bool same_chunks = same && parallel.virtual_pipeline == written.virtual_pipeline;
    parallel.stage_layers = same ? written.stage_layers : std::vector<int>{};
    parallel.position_layers = same_chunks ? written.position_layers : std::vector<int>{};
    parallel.zero_group = parallel.zero_stage == 3 ? written.zero_group : 0;
    choices_.push_back(std::move(choice));
  }

  const Scenario& base_;
  const SearchSpace& space_;
  std::vector<PlanChoice> choices_;
};

std::string text(std::int64_t number) { return std::to_string(number); }

/// A GPU of the cluster that does not compute in this precision, or null. The file's own precision was checked when it was read.
const Device* device_without(const Scenario& base, const SearchSpace& space, Precision precision) {
  if (precision == base.plan.training.precision) return nullptr;
  const int nodes = static_cast<int>(space.cluster.gpus_by_node.size());
  for (int node = 0; node < nodes; ++node) {
    const Device& device = base.platform.type_of(NodeId{node}).device;
    for (const Precision each : {precision, base_precision(precision)})
      if (!device.peak.contains(each)) return &device;
  }
  return nullptr;
}

/// What must hold before products of these numbers can be trusted.
std::vector<PlanRejection> reject_products(const Scenario& base, const SearchSpace& space,
                                           const PlanChoice& choice) {
  const Parallel& parallel = choice.parallel;
  const std::int64_t ways = parallel.model_ranks();
  const std::vector<Factor> factors{
      {"tensor", parallel.tensor}, {"context", parallel.context}, {"pipeline", parallel.pipeline}};
  if (parallel.data == 0)
    return {{"/parallel",
             product_text(factors) + " does not divide the " + text(space.gpus) + " GPUs",
             {}}};
  if (ways > space.gpus || ways * parallel.data != space.gpus) {
    std::vector<Factor> all = factors;
    all.push_back({"data", parallel.data});
    return {{"/parallel",
             product_text(all, false) + " is not " + text(space.gpus) + ", the number of GPUs",
             space.gpus % ways == 0 ? "data " + text(space.gpus / ways) + " would use them all"
                                    : std::string{}}};
  }
  const Precision precision = choice.training.precision;
  if (const Device* device = device_without(base, space, precision))
    return {{"/training/precision",
             std::string("device \"") + device->name + "\" has no " + name_of(precision) + " rate",
             {}}};
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
  PlanMaker maker(base.model, space.cluster, base.software);
  auto laid_out = lay_out(base, space, choice, maker);
  if (auto* rejections = std::get_if<std::vector<PlanRejection>>(&laid_out))
    return std::move(*rejections);
  return maker.take();
}

std::variant<const Plan*, std::vector<PlanRejection>> lay_out(const Scenario& base,
                                                              const SearchSpace& space,
                                                              const PlanChoice& choice,
                                                              PlanMaker& maker) {
  auto rejections = reject_products(base, space, choice);
  if (!rejections.empty()) return rejections;
  return maker.make(choice.training, choice.parallel);
}

std::string text_of(const PlanChoice& choice, const Scenario& base) {
  const PlanChoice written{base.plan.training, base.plan.parallel};
  std::string line;
  for (const SearchKey& searched : search_keys()) {
    const Key& key = *searched.key;
    const int value = key.value.get(choice);
    const bool is_of_interest =
        searched.varies_always ? value > 0
                               : base.search.varies(key.name()) || value != key.value.get(written);
    if (!is_of_interest) continue;
    line += line.empty() ? "" : " · ";
    // A schedule is known by its name alone.
    if (key.pointer == plan_keys::schedule)
      line += choice.parallel.schedule->name;
    else
      line += key.name() + " " + text_of(key, value);
  }
  return line;
}

}  // namespace windtunnel
