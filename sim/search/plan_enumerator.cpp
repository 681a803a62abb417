#include "search/plan_enumerator.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "plan/plan_check.hpp"

namespace windtunnel {
namespace {

/// The keys that place ranks or decide how many microbatches there are stand first in search_keys(): tensor, pipeline, context, data,
/// micro_batch.
constexpr std::size_t num_head_keys = 5;

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
  const std::int64_t ways = parallel.ranks_of_replica();
  const std::vector<Factor> factors = factors_of_replica(parallel);
  if (parallel.data == 0)
    return {{"/parallel",
             product_text(factors) + " does not divide the " + text(space.gpus) + " GPUs",
             {}}};
  if (ways > space.gpus || ways * parallel.data != space.gpus) {
    return {{"/parallel",
             product_text(parallel, false) + " is not " + text(space.gpus) + ", the number of GPUs",
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

/// Whether the head does not already say why none of its plans can be laid out.
bool can_hold(const Scenario& base, const SearchSpace& space, const PlanChoice& head) {
  Parallel parallel = head.parallel;
  parallel.virtual_pipeline = 1;
  parallel.schedule = default_schedule();
  if (parallel.pipeline != base.plan.parallel.pipeline)
    parallel.stage_layers = parallel.position_layers = {};
  return reject_products(base, space, head).empty() && base.model.heads % parallel.tensor == 0 &&
         divides_into_chunks(base, parallel);
}

/// The combinations of the space one key after the other.
class Enumeration {
 public:
  Enumeration(const Scenario& base, const SearchSpace& space)
      : base_(base), space_(space), follows_(keys_that_follow(base)) {}

  std::vector<PlanChoice> all() {
    vary(0, {base_.plan.training, base_.plan.parallel});
    return std::move(choices_);
  }

 private:
  /// The keys that are not searched and that the file leaves out, where their default depends on the plan.
  static std::vector<const Key*> keys_that_follow(const Scenario& base) {
    std::vector<const Key*> keys;
    for (const Key& key : key_table()) {
      if (!key.fallback) continue;
      const bool is_searched = std::ranges::any_of(
          search_keys(), [&](const SearchKey& searched) { return searched.key == &key; });
      const JsonValue* const value = find_at(base.resolved, key.pointer);
      if (!is_searched && value != nullptr && value->origin.kind == OriginKind::defaulted)
        keys.push_back(&key);
    }
    return keys;
  }

  /// Adds the choices that differ from `choice` in the keys from this one on.
  void vary(std::size_t place, PlanChoice choice) {
    if (place == num_head_keys && space_.tries_everything && !can_hold(base_, space_, choice))
      return choices_.push_back(std::move(choice));
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
      if (space_.tries_everything && !can_be(searched.key->pointer, choice)) continue;
      vary(place + 1, choice);
      if (searched.matters && !searched.matters(choice.parallel)) break;
    }
  }

  /// Whether the value of this key goes with those before it. What a user lists is judged by lay_out(), and counted.
  bool can_be(const std::string& pointer, const PlanChoice& choice) const {
    const Parallel& parallel = choice.parallel;
    const int chunks = parallel.virtual_pipeline;
    if (pointer == plan_keys::chunks)
      return chunks == 1 ||
             (parallel.pipeline > 1 && divides_into_chunks(base_, with_own_layers(parallel)));
    if (pointer == plan_keys::schedule) return can_order(*parallel.schedule, parallel);
    if (pointer == plan_keys::sequence_parallel)
      return parallel.sequence_parallel || parallel.tensor == 1 || !base_.model.moe;
    const std::int64_t ranks = parallel.data == 0 ? 1 : space_.gpus / parallel.pipeline;
    if (pointer == plan_keys::expert) return ranks % parallel.expert == 0;
    if (pointer == plan_keys::expert_tensor)
      return (parallel.expert_tensor == 1 || parallel.expert_tensor == parallel.tensor) &&
             ranks % expert_ways(parallel) == 0;
    return true;
  }

  /// One stage and one chunk have an order that nothing can improve.
  static bool can_order(const Schedule& schedule, const Parallel& parallel) {
    const bool is_for_several = schedule.takes(2);
    if (!schedule.takes(parallel.virtual_pipeline) ||
        is_for_several != (parallel.virtual_pipeline > 1))
      return false;
    if (parallel.pipeline == 1) return schedule.is_default;
    return !schedule.is_both_ways() || parallel.pipeline % 2 == 0;
  }

  /// The file's own stage_layers are for its own number of stages; others are laid out evenly.
  Parallel with_own_layers(Parallel parallel) const {
    const Parallel& written = base_.plan.parallel;
    const bool same = parallel.pipeline == written.pipeline;
    const bool same_chunks = same && parallel.virtual_pipeline == written.virtual_pipeline;
    parallel.stage_layers = same ? written.stage_layers : std::vector<int>{};
    parallel.position_layers = same_chunks ? written.position_layers : std::vector<int>{};
    return parallel;
  }

  /// What is not searched and follows from what has been chosen.
  void derive(const std::string& pointer, Parallel& parallel) const {
    if (pointer == plan_keys::data) {
      const std::int64_t ways = parallel.ranks_of_replica();
      parallel.data = space_.gpus % ways == 0 ? static_cast<int>(space_.gpus / ways) : 0;
    } else if (pointer == plan_keys::schedule) {
      parallel.schedule = schedule_of_chunks(base_, parallel.virtual_pipeline);
    }
  }

  void add(PlanChoice choice) {
    Parallel& parallel = choice.parallel;
    parallel = with_own_layers(std::move(parallel));
    parallel.pipeline_send = send_with(*parallel.schedule, base_.plan.parallel, base_.software);
    if (!is_quantized(choice.training.precision) &&
        choice.training.attention_kernel == FlashKernel::fp8)
      choice.training.attention_kernel = FlashKernel::cudnn;
    parallel.zero_group = parallel.zero_stage > 0 ? base_.plan.parallel.zero_group : 0;
    for (const Key* key : follows_) key->fallback(choice, base_.software);
    choices_.push_back(std::move(choice));
  }

  const Scenario& base_;
  const SearchSpace& space_;
  const std::vector<const Key*> follows_;
  std::vector<PlanChoice> choices_;
};

}  // namespace

std::vector<PlanChoice> enumerate_plans(const Scenario& base, const SearchSpace& space) {
  return Enumeration(base, space).all();
}

std::variant<Plan, std::vector<PlanRejection>> lay_out(const Scenario& base,
                                                       const SearchSpace& space,
                                                       const PlanChoice& choice) {
  auto rejections = reject_products(base, space, choice);
  if (!rejections.empty()) return rejections;
  return make_plan(base.model, choice.training, choice.parallel, space.cluster, base.software,
                   base.plan.compression);
}

}  // namespace windtunnel
