#include "search/search_space.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/mapped.hpp"
#include "core/problem.hpp"
#include "plan/nvlink_groups.hpp"
#include "plan/plan_check.hpp"
#include "report/number_text.hpp"
#include "scenario/balanced_layers.hpp"
#include "scenario/search_block.hpp"

namespace windtunnel {
namespace {

constexpr const char* segment_pointer = "/platform/segment";

/// The segment inside which most groupings, of tensor, context and expert degrees in the search, keep their groups; of equals the largest.
int best_segment(const Scenario& base, int gpus_per_node) {
  const SearchSpace space = search_space(base);
  std::vector<Parallel> all{base.plan.parallel};
  const auto vary = [&](const char* key, int Parallel::*degree) {
    std::vector<Parallel> varied;
    for (const Parallel& each : all)
      for (const int value : space.of(key)) {
        varied.push_back(each);
        varied.back().*degree = value;
      }
    if (!varied.empty()) all = std::move(varied);
  };
  vary("tensor", &Parallel::tensor);
  vary("context", &Parallel::context);
  if (base.model.moe) {
    vary("expert", &Parallel::expert);
    vary("expert_tensor", &Parallel::expert_tensor);
  }
  const int most = base.platform.domain_nodes;
  std::vector<int> keeps(static_cast<std::size_t>(most) + 1, 0);
  for (const Parallel& parallel : all) {
    const std::vector<NvlinkGroup> groups = nvlink_groups(parallel);
    for (int segment = 1; segment <= most; ++segment)
      keeps[static_cast<std::size_t>(segment)] +=
          std::ranges::all_of(groups, [&](const NvlinkGroup& group) {
            return std::int64_t{segment} * gpus_per_node % group.block == 0;
          });
  }
  const auto best = std::max_element(keeps.rbegin(), keeps.rend());
  return static_cast<int>(keeps.rend() - best) - 1;
}

/// Each once, in order.
std::vector<int> without_repeats(const std::vector<int>& given) {
  std::vector<int> once;
  for (const int value : given)
    if (std::ranges::find(once, value) == once.end()) once.push_back(value);
  return once;
}

std::vector<int> divisors(int number, int most) {
  std::vector<int> result;
  for (int i = 1; i <= std::min(number, most); ++i)
    if (number % i == 0) result.push_back(i);
  return result;
}

std::vector<int> powers_of_two(int most) {
  std::vector<int> result;
  for (int power = 1; power <= most; power *= 2) result.push_back(power);
  return result;
}

bool balances_layers(const Scenario& base) {
  const auto& moe = base.model.moe;
  if (moe && (moe->dense_layers > 0 || moe->every > 1)) return false;
  if (base.balances_stages) return true;
  const auto speed = [](const NodeType& node) {
    return std::tie(node.device.name, node.compute_efficiency, node.launch_slowdown);
  };
  return is_left_out(base, plan_keys::stage_layers) &&
         std::ranges::any_of(base.nodes, [&](const NodeType& node) {
           return speed(node) != speed(base.nodes.front());
         });
}

/// Default values of the keys that the block leaves out, one key after the other.
class Defaults {
 public:
  Defaults(const Scenario& base, const SearchSpace& space)
      : base_(base), space_(space), supported_(supported_values(base)) {}

  std::vector<int> of(const Key& key) const {
    const std::string name = key.name();
    const std::vector<int>& by_node = space_.cluster.gpus_by_node;
    if (name == "tensor")
      return as_far_as_supported(key, divisors(*std::ranges::min_element(by_node), space_.gpus));
    if (name == "pipeline")
      return as_far_as_supported(key, divisors(space_.gpus, base_.model.layers));
    if (name == "micro_batch")
      return as_far_as_supported(key, powers_of_two(largest_default_micro_batch));
    if (name == "data") return {};
    if (name == "no_sync") return no_sync(key);
    const bool is_written = base_.plan.parallel.schedule->written != nullptr;
    if (name == "schedule" && (is_written || !space_.tries_everything)) return {};
    if (!space_.tries_everything && key.fallback && is_left_out(base_, key.pointer)) return {};
    return space_.tries_everything && !is_written ? supported(key) : std::vector{own(key)};
  }

 private:
  int own(const Key& key) const {
    return key.value.get({base_.plan.training, base_.plan.parallel});
  }

  /// Both where the stack keeps whole gradients and nobody decided; else each plan has what the file says, or its default.
  std::vector<int> no_sync(const Key& key) const {
    if (!space_.tries_everything || !base_.software.no_sync || !is_left_out(base_, key.pointer))
      return {};
    return as_far_as_supported(key, {1, 0});
  }

  /// The values that the stack lists, and the file's own; all if it lists none.
  std::vector<int> as_far_as_supported(const Key& key, std::vector<int> values) const {
    const auto listed = supported_.find(key.name());
    if (listed != supported_.end())
      std::erase_if(values, [&](int value) {
        return value != own(key) &&
               std::ranges::find(listed->second, value) == listed->second.end();
      });
    return values;
  }

  /// Values of the key that can be simulated and that the stack supports, and the file's own.
  std::vector<int> supported(const Key& key) const {
    std::vector<int> values = as_far_as_supported(key, simulated(key));
    values.push_back(own(key));
    std::ranges::sort(values);
    return without_repeats(values);
  }

  std::vector<int> simulated(const Key& key) const {
    const std::string name = key.name();
    if (name == "context") return contexts();
    if (name == "virtual_pipeline") return chunks();
    if (name == "expert")
      return base_.model.moe ? divisors(base_.model.moe->experts, space_.gpus) : std::vector{1};
    if (name == "expert_tensor")
      return base_.model.moe ? space_.values.front() : std::vector{1};  // those of tensor
    if (name == "precision") return {};
    std::vector<int> all;
    for (int value = key.value.least; value <= key.value.most; ++value)
      if (name != "schedule" ||  // GPipe takes as long as 1F1B, and holds more
          named_schedules()[static_cast<std::size_t>(value)] != schedule_named("gpipe"))
        all.push_back(value);
    return all;
  }

  std::vector<int> contexts() const {
    const bool can_be_cut = base_.plan.training.attention == Attention::flash ||
                            base_.plan.parallel.context_method == ContextMethod::all_to_all;
    const int most = can_be_cut ? base_.model.sequence / fewest_default_context_tokens : 1;
    return powers_of_two(std::clamp(most, 1, space_.gpus));
  }

  std::vector<int> chunks() const {
    std::vector<int> numbers{1};
    const SchedulePtr schedule = default_schedule(2);
    for (int chunks = 2; chunks <= base_.model.layers; ++chunks)
      for (const int stages : space_.of("pipeline")) {
        Parallel parallel = base_.plan.parallel;
        parallel.pipeline = stages;
        parallel.virtual_pipeline = chunks;
        parallel.stage_layers = parallel.position_layers = {};
        parallel.schedule = schedule;
        if (stages == 1 || !divides_into_chunks(base_, parallel)) continue;
        numbers.push_back(chunks);
        break;
      }
    return numbers;
  }

  const Scenario& base_;
  const SearchSpace& space_;
  const SearchLists supported_;
};

/// Values that follow from those of the other axes.
std::vector<int> derived_values(const Scenario& base, const SearchSpace& space, const Key& key) {
  std::vector<int> values;
  if (key.name() == "data") {
    for (const int tensor : space.of("tensor"))
      for (const int pipeline : space.of("pipeline"))
        for (const int context : space.of("context")) {
          Parallel replica;
          replica.tensor = tensor;
          replica.pipeline = pipeline;
          replica.context = context;
          const std::int64_t ranks = replica.ranks_of_replica();
          if (space.gpus % ranks == 0) values.push_back(static_cast<int>(space.gpus / ranks));
        }
  } else if (key.name() == "no_sync") {
    const auto tries = [&](const char* axis, int value) {
      return std::ranges::count(space.of(axis), value) > 0;
    };
    PlanChoice choice{base.plan.training, base.plan.parallel};
    const bool may_keep = !is_left_out(base, key.pointer) || base.software.no_sync;
    if (may_keep && tries("zero_stage", 3) && tries("pipeline", 1)) {
      choice.parallel.zero_stage = 3;
      choice.parallel.pipeline = 1;
      values.push_back(unsearched_value(base, key, choice));
    }
  } else if (key.fallback) {
    PlanChoice choice{base.plan.training, base.plan.parallel};
    for (const int tensor : space.of("tensor")) {
      choice.parallel.tensor = tensor;
      values.push_back(unsearched_value(base, key, choice));
    }
  } else {
    PlanChoice choice{base.plan.training, base.plan.parallel};
    for (const int chunks : space.of("virtual_pipeline")) {
      choice.parallel.schedule = schedule_of_chunks(base, chunks);
      values.push_back(key.value.get(choice));
    }
  }
  std::ranges::sort(values);
  return without_repeats(values);
}

}  // namespace

int unsearched_value(const Scenario& base, const Key& key, PlanChoice choice) {
  if (is_left_out(base, key.pointer)) {
    key.fallback(choice, base.software);
    // As read_parallel() has it: no stack runs experts in tensor groups whose tokens are whole.
    if (key.pointer == plan_keys::sequence_parallel && base.model.moe && choice.parallel.tensor > 1)
      choice.parallel.sequence_parallel = true;
  }
  return key.value.get(choice);
}

bool is_left_out(const Scenario& base, const std::string& pointer) {
  const JsonValue* const value = find_at(base.resolved, pointer);
  return value != nullptr && value->origin.kind == OriginKind::defaulted;
}

Scenario on_segment_of_search(Scenario base) {
  JsonValue* const used = find_at(base.resolved, segment_pointer);
  if (base.platform.domain_nodes == 1 || base.plan.num_nodes == 1 || used == nullptr ||
      used->origin.kind != OriginKind::defaulted)
    return base;
  const auto segment = static_cast<int>(std::get<std::int64_t>(used->content));
  const int best = best_segment(base, base.nodes.front().gpus / segment);
  if (best == segment) return base;
  Platform platform = in_segments(machine_of(base.platform), num_trays(base.nodes), best);
  const int nodes = platform.available_nodes();
  ClusterShape cluster = first_nodes(platform, nodes);
  cluster.nodes_given = true;
  auto made = make_plan(base.model, base.plan.training, base.plan.parallel, cluster, base.software,
                        base.plan.compression);
  if (!std::holds_alternative<Plan>(made)) return base;  // the file's own plan needs its segment
  base.plan = std::get<Plan>(std::move(made));
  base.platform = std::move(platform);
  base.nodes = types_of_nodes(base.platform, nodes);
  used->content = std::int64_t{best};
  return base;
}

bool divides_into_chunks(const Scenario& base, const Parallel& parallel) {
  const LayerSplit split = layer_split({base.model, base.plan.training, parallel, base.software});
  if (!split.positions.empty()) return true;
  return !split.stages.empty() && std::ranges::all_of(split.stages, [&](int layers) {
    return layers % parallel.virtual_pipeline == 0;
  });
}

const std::vector<int>& SearchSpace::of(std::string_view key) const {
  std::size_t place = 0;
  while (search_keys().at(place).key->name() != key) ++place;
  return values.at(place);
}

SchedulePtr schedule_of_chunks(const Scenario& base, int chunks) {
  const SchedulePtr& given = base.plan.parallel.schedule;
  const bool is_searched = chunks != base.plan.parallel.virtual_pipeline;
  if (!is_searched || given->written) return given;
  const bool is_for_several = given->takes(2);
  const bool fits = given->takes(chunks) && is_for_several == (chunks > 1);
  return fits ? given : default_schedule(chunks);
}

std::vector<TriedKey> tried_keys(const Scenario& base, const SearchSpace& space) {
  std::vector<TriedKey> tried;
  for (std::size_t i = 0; i < search_keys().size(); ++i) {
    const Key& key = *search_keys()[i].key;
    std::vector<int> values =
        space.values[i].empty() ? derived_values(base, space, key) : space.values[i];
    if (!values.empty() || key.name() != "no_sync") tried.push_back({&key, std::move(values)});
  }
  const auto is_listed = [&](const Key& key) {
    return std::ranges::any_of(tried, [&](const TriedKey& each) { return each.key == &key; });
  };
  for (const Key& key : key_table()) {
    const bool is_held =
        key.absent == Absent::required || (key.is_choice && key.is_choice(base.plan.parallel));
    if (is_held && key.value.kind != KeyValue::Kind::other && !is_listed(key))
      tried.push_back({&key, {key.value.get({base.plan.training, base.plan.parallel})}});
  }
  return tried;
}

SearchSpace search_space(const Scenario& base) {
  SearchSpace space;
  space.gpus = base.plan.num_ranks();
  space.cluster.nodes_given = true;
  space.cluster.gpus_by_node = mapped(base.nodes, &NodeType::gpus);
  space.tries_everything = std::ranges::all_of(
      base.search.values, [](const auto& listed) { return listed.first == "precision"; });
  space.balances_layers = balances_layers(base);
  const Defaults defaults(base, space);
  for (const SearchKey& searched : search_keys()) {
    const auto given = base.search.values.find(searched.key->name());
    space.values.push_back(given == base.search.values.end() ? defaults.of(*searched.key)
                                                             : without_repeats(given->second));
  }
  // A space of more is one that nobody meant: its plans would fill the memory before the first is looked at.
  constexpr double most = 1e6;
  double combinations = 1;
  for (const std::vector<int>& values : space.values)
    combinations *= static_cast<double>(std::max<std::size_t>(values.size(), 1));
  if (!space.tries_everything && combinations > most)
    throw InputError({{{},
                       "/search",
                       "the lists make " + grouped_text(combinations) +
                           " combinations, more than the million that are searched",
                       "list fewer values"}});
  return space;
}

namespace {

/// The keys that place ranks or decide how many microbatches there are stand first in search_keys(): tensor, pipeline, context, data,
/// micro_batch.
constexpr std::size_t num_head_keys = 5;

/// The combinations of the space one key after the other.
class Enumeration {
 public:
  Enumeration(const Scenario& base, const SearchSpace& space)
      : base_(base), space_(space), follows_(keys_that_follow(base)) {}

  std::vector<PlanChoice> heads() {
    end_ = num_head_keys;
    vary(0, {base_.plan.training, base_.plan.parallel});
    return std::move(choices_);
  }

  std::vector<PlanChoice> of_head(const PlanChoice& head) {
    end_ = space_.values.size();
    vary(num_head_keys, head);
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
      if (!is_searched && is_left_out(base, key.pointer)) keys.push_back(&key);
    }
    return keys;
  }

  /// Adds the choices that differ from `choice` in the keys from this one on.
  void vary(std::size_t place, PlanChoice choice) {
    if (place == end_) return add(std::move(choice));
    const SearchKey& searched = search_keys()[place];
    const std::vector<int>& values = space_.values[place];
    if (values.empty()) {  // derived from those that have been chosen
      const Key& key = *searched.key;
      Parallel& parallel = choice.parallel;
      if (key.pointer == plan_keys::data) {
        const std::int64_t replica = parallel.ranks_of_replica();
        parallel.data = space_.gpus % replica == 0 ? static_cast<int>(space_.gpus / replica) : 0;
      } else if (key.pointer == plan_keys::schedule) {
        parallel.schedule = schedule_of_chunks(base_, parallel.virtual_pipeline);
      } else {
        key.value.set(choice, unsearched_value(base_, key, choice));
      }
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
      if (searched.matters && !searched.matters(choice)) break;
    }
  }

  /// True if the value of this key is compatible with those before it. Values that a user lists are judged by lay_out(), and counted.
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
             ranks % expert_group_size(parallel) == 0;
    return true;
  }

  /// One stage and one chunk have an order that nothing can improve.
  static bool can_order(const Schedule& schedule, const Parallel& parallel) {
    const bool is_for_several = schedule.takes(2);
    if (!schedule.takes(parallel.virtual_pipeline) ||
        is_for_several != (parallel.virtual_pipeline > 1))
      return false;
    if (parallel.pipeline == 1) return schedule.is_default;
    return !schedule.is_bidirectional() || parallel.pipeline % 2 == 0;
  }

  /// The file's own stage_layers are for its own number of stages; others are laid out evenly.
  Parallel with_own_layers(Parallel parallel) const {
    const Parallel& written = base_.plan.parallel;
    const bool same = parallel.pipeline == written.pipeline && !space_.balances_layers;
    const bool same_chunks = same && parallel.virtual_pipeline == written.virtual_pipeline;
    parallel.stage_layers = same ? written.stage_layers : std::vector<int>{};
    parallel.position_layers = same_chunks ? written.position_layers : std::vector<int>{};
    return parallel;
  }

  void add(PlanChoice choice) {
    Parallel& parallel = choice.parallel;
    parallel = with_own_layers(std::move(parallel));
    parallel.pipeline_send = send_with(*parallel.schedule, base_.plan.parallel, base_.software);
    if (!is_quantized(choice.training.precision) &&
        choice.training.attention_kernel == FlashKernel::fp8)
      choice.training.attention_kernel = FlashKernel::cudnn;
    parallel.zero_group = parallel.zero_stage > 0 ? base_.plan.parallel.zero_group : 0;
    parallel.no_sync = parallel.no_sync && parallel.can_scatter_in_passes();
    for (const Key* key : follows_) key->fallback(choice, base_.software);
    choices_.push_back(std::move(choice));
  }

  const Scenario& base_;
  const SearchSpace& space_;
  const std::vector<const Key*> follows_;
  std::size_t end_ = 0;  ///< place of the key behind the last that varies
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

/// Rejects numbers whose products would overflow.
std::vector<PlanRejection> reject_products(const Scenario& base, const SearchSpace& space,
                                           const PlanChoice& choice) {
  const Parallel& parallel = choice.parallel;
  const std::int64_t replica = parallel.ranks_of_replica();
  const std::vector<Factor> factors = factors_of_replica(parallel);
  if (parallel.data == 0)
    return {{"/parallel",
             product_text(factors) + " does not divide the " + text(space.gpus) + " GPUs",
             {}}};
  if (replica > space.gpus || replica * parallel.data != space.gpus) {
    return {{"/parallel",
             product_text(parallel, false) + " is not " + text(space.gpus) + ", the number of GPUs",
             space.gpus % replica == 0
                 ? "data " + text(space.gpus / replica) + " would use them all"
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

/// False if the head alone already rules out all of its plans.
bool can_hold(const Scenario& base, const SearchSpace& space, const PlanChoice& head) {
  Parallel parallel = head.parallel;
  parallel.virtual_pipeline = 1;
  parallel.schedule = default_schedule();
  if (parallel.pipeline != base.plan.parallel.pipeline)
    parallel.stage_layers = parallel.position_layers = {};
  return reject_products(base, space, head).empty() && base.model.heads % parallel.tensor == 0 &&
         divides_into_chunks(base, parallel);
}

}  // namespace

std::vector<PlanChoice> enumerate_heads(const Scenario& base, const SearchSpace& space) {
  return Enumeration(base, space).heads();
}

std::vector<PlanChoice> enumerate_plans(const Scenario& base, const SearchSpace& space,
                                        const PlanChoice& head) {
  if (space.tries_everything && !can_hold(base, space, head)) return {head};
  return Enumeration(base, space).of_head(head);
}

std::vector<PlanChoice> enumerate_plans(const Scenario& base, const SearchSpace& space) {
  std::vector<PlanChoice> all;
  for (const PlanChoice& head : enumerate_heads(base, space)) {
    std::vector<PlanChoice> plans = enumerate_plans(base, space, head);
    std::move(plans.begin(), plans.end(), std::back_inserter(all));
  }
  return all;
}

std::variant<Plan, std::vector<PlanRejection>> lay_out(const Scenario& base,
                                                       const SearchSpace& space,
                                                       const PlanChoice& choice) {
  PlanMaker maker(base.model, space.cluster, base.software, base.plan.compression);
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

std::variant<const Plan*, std::vector<PlanRejection>> lay_out_as_tried(const Scenario& base,
                                                                       const SearchSpace& space,
                                                                       PlanChoice& choice,
                                                                       PlanMaker& maker) {
  const Parallel& parallel = choice.parallel;
  if (!space.balances_layers || parallel.pipeline == 1 || parallel.schedule->is_bidirectional() ||
      base.model.layers % parallel.virtual_pipeline != 0)
    return lay_out(base, space, choice, maker);
  PlanChoice balanced = choice;
  balanced.parallel.position_layers.clear();
  balanced.parallel.stage_layers =
      layers_before_balance(base.model.layers, choice.parallel.pipeline);
  const auto laid_out = lay_out(base, space, balanced, maker);
  const Plan* const* const plan = std::get_if<const Plan*>(&laid_out);
  if (plan == nullptr) return lay_out(base, space, choice, maker);
  std::vector<std::set<const NodeType*>> types(static_cast<std::size_t>(parallel.pipeline));
  for (const PlanDevice& device : (*plan)->devices)
    types[device.stage.index()].insert(&base.platform.type_of(device.node));
  const bool are_alike = std::ranges::adjacent_find(types, std::not_equal_to<>()) == types.end();
  if (are_alike && !base.balances_stages) return lay_out(base, space, choice, maker);
  choice = std::move(balanced);
  LayerSplit split = balanced_split(base, **plan, StageTimes::on_a_straight_line);
  choice.parallel.stage_layers = std::move(split.stages);
  choice.parallel.position_layers = std::move(split.positions);
  return lay_out(base, space, choice, maker);
}

}  // namespace windtunnel
