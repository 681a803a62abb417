#include "search/search_space.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/problem.hpp"
#include "plan/nvlink_groups.hpp"
#include "plan/plan_check.hpp"
#include "report/number_text.hpp"
#include "scenario/scenario.hpp"
#include "scenario/search_block.hpp"

namespace windtunnel {
namespace {

constexpr const char* segment_pointer = "/platform/segment";

/// The ways that tensor, context and expert groups are made in the search.
std::vector<Parallel> groupings(const Scenario& base) {
  const SearchSpace space = search_space(base);
  std::vector<Parallel> all{base.plan.parallel};
  const auto vary = [&](const char* key, int Parallel::*ways) {
    std::vector<Parallel> varied;
    for (const Parallel& each : all)
      for (const int value : space.of(key)) {
        varied.push_back(each);
        varied.back().*ways = value;
      }
    if (!varied.empty()) all = std::move(varied);
  };
  vary("tensor", &Parallel::tensor);
  vary("context", &Parallel::context);
  if (base.model.moe) {
    vary("expert", &Parallel::expert);
    vary("expert_tensor", &Parallel::expert_tensor);
  }
  return all;
}

/// Of which segment most groupings keep their groups inside; of equals the largest.
int best_segment(const Scenario& base, int gpus_per_node) {
  const int most = base.platform.domain_nodes;
  std::vector<int> keeps(static_cast<std::size_t>(most) + 1, 0);
  for (const Parallel& parallel : groupings(base)) {
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

/// A space that nobody meant: its plans would fill the memory before the first is looked at.
void expect_countable(const SearchSpace& space) {
  constexpr double most = 1e6;
  double combinations = 1;
  for (const std::vector<int>& values : space.values)
    combinations *= static_cast<double>(std::max<std::size_t>(values.size(), 1));
  if (combinations <= most) return;
  throw InputError({{{},
                     "/search",
                     "the lists make " + grouped_text(combinations) +
                         " combinations, more than the million that are searched",
                     "list fewer values"}});
}

ClusterShape cluster_of(const std::vector<NodeType>& nodes) {
  ClusterShape cluster;
  cluster.nodes_given = true;
  for (const NodeType& node : nodes) cluster.gpus_by_node.push_back(node.gpus);
  return cluster;
}

/// What the software profile says of itself, which was found correct when the scenario was read.
SearchLists supported_values(const Scenario& base) {
  const JsonValue* const supports = find_at(base.resolved, "/software/supports");
  if (supports == nullptr) return {};
  JsonValue copy = *supports;
  Problems problems;
  return read_supported(ObjectReader(copy, "/software/supports", problems));
}

/// What is tried for a key that the block leaves out, one key after the other.
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
    const bool is_written = base_.plan.parallel.schedule->written != nullptr;
    if (name == "schedule" && (is_written || !space_.tries_everything)) return {};
    return space_.tries_everything && !is_written ? supported(key) : std::vector{own(key)};
  }

 private:
  int own(const Key& key) const {
    return key.value.get({base_.plan.training, base_.plan.parallel});
  }

  /// Where every axis is tried, values that the stack lists; all of them where it lists none.
  std::vector<int> as_far_as_supported(const Key& key, std::vector<int> values) const {
    const auto listed = supported_.find(key.name());
    if (space_.tries_everything && listed != supported_.end())
      std::erase_if(values, [&](int value) {
        return std::ranges::find(listed->second, value) == listed->second.end();
      });
    return values;
  }

  /// What can be simulated of it, as far as the stack supports it, and what the file has.
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
      if (name != "schedule" || !is_slower_twin(value)) all.push_back(value);
    return all;
  }

  /// GPipe takes as long as 1F1B, and holds more.
  static bool is_slower_twin(int schedule) {
    return named_schedules()[static_cast<std::size_t>(schedule)] == schedule_named("gpipe");
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

/// What follows from the values of the other axes.
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
    tried.push_back(
        {&key, space.values[i].empty() ? derived_values(base, space, key) : space.values[i]});
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
  space.cluster = cluster_of(base.nodes);
  space.tries_everything = base.search.values.empty();
  const Defaults defaults(base, space);
  for (const SearchKey& searched : search_keys()) {
    const auto given = base.search.values.find(searched.key->name());
    space.values.push_back(given == base.search.values.end() ? defaults.of(*searched.key)
                                                             : without_repeats(given->second));
  }
  if (!space.tries_everything) expect_countable(space);
  return space;
}

}  // namespace windtunnel
