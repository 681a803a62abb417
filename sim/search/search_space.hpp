#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "plan/plan.hpp"
#include "scenario/key_table.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// The set of plans that `rank` searches: for each key of a plan the values to try, i.e. the `search` block of a scenario with its defaults
/// filled in. Its plans are the combinations of these values, whether or not they are legal:
///
///   64 GPUs in nodes of 8, all keys open:  tensor 1 2 4 8 × pipeline 1 2 4 … × micro_batch 1 2 4 … 32, data = the rest
///
/// search_space() makes it; enumerate_plans() lists its combinations, lay_out() turns one into a Plan or says why it cannot be one, and
/// rank_plans() (search/rank.hpp) simulates the promising ones.
struct SearchSpace {
  int gpus = 0;          ///< that every plan uses
  ClusterShape cluster;  ///< their nodes
  /// The block lists no key but precision: all other values are defaults, and combinations that cannot be are left out without a word.
  bool tries_everything = false;
  /// Each plan has its layers balanced among its stages: the file asks for it, or leaves the layers open and its GPUs are unlike.
  bool balances_layers = false;
  /// In the order of search_keys(), as Key::get has them. Without values for `data`: whatever the other axes leave; for `schedule`:
  /// the file's, or the default one for several chunks; for `no_sync`: the file's, or the plan's default.
  std::vector<std::vector<int>> values;

  /// Values of the key of this name.
  const std::vector<int>& of(std::string_view key) const;
};

/// Largest microbatch that is tried without being asked for: beyond it the vTrain sweep, the widest measured one, has no
/// fast plan.
inline constexpr int largest_default_micro_batch = 32;

/// Fewest tokens of a sequence that are left to each rank of a context group which nobody asked for: cutting further trades products
/// that no longer fill a GPU for memory that other axes give more cheaply.
inline constexpr int fewest_default_context_tokens = 2048;

/// The space around `base`. The GPUs are those that the file's own plan uses. Left out of the block:
///  - tensor: the divisors of a node's GPUs (of the smallest node's, where they differ);
///  - pipeline: the divisors of all GPUs, up to the model's layers;
///  - data: the rest of the GPUs;
///  - micro_batch: the powers of two up to 32;
/// each as far as the software supports it (its key `supports`).
/// If the block lists any key but precision, the others stay as the file has them. If it lists none, they take every value that the
/// software supports, and the file's:
///  - context: the powers of two that leave each rank 2,048 tokens of a sequence, with an attention that can be cut;
///  - virtual_pipeline: the numbers of chunks into which some pipeline divides the layers;
///  - schedule: all but gpipe, which takes as long as 1f1b and more memory; a written schedule stays;
///  - recompute, sequence_parallel, zero_stage: all;
///  - no_sync: both, where the stack has it and the file leaves it out;
///  - expert: the divisors of the model's experts; expert_tensor: 1, or as many as tensor;
///  - precision stays as the file has it, since it changes what is trained.
/// Values that are given twice are tried once. InputError when the lists make more than a million combinations.
SearchSpace search_space(const Scenario& base);

/// The value of a key that is not searched: the file's, or the default of this plan.
int unsearched_value(const Scenario& base, const Key& key, PlanChoice choice);
/// True if the file leaves the value at `pointer` to its default.
bool is_left_out(const Scenario& base, const std::string& pointer);

/// The schedule of plans with this many chunks where none is searched: the file's, or the default one where that is for another number.
SchedulePtr schedule_of_chunks(const Scenario& base, int chunks);

/// A key of a plan with the values that the space has for it: several that are searched, or one that is held fixed.
struct TriedKey {
  const Key* key;
  std::vector<int> values;
  bool is_searched() const { return values.size() > 1; }
};

/// All keys that matter in some plan of the space: those of the search, then those that no search varies.
std::vector<TriedKey> tried_keys(const Scenario& base, const SearchSpace& space);

/// True if the layers of the model divide evenly into the chunks of this plan's stages.
bool divides_into_chunks(const Scenario& base, const Parallel& parallel);

/// The scenario on the segment of each NVLink domain that suits most plans of its search (Platform: `segment`), where the file says none:
/// one cluster is searched, and what suits the file's own plan may make others straddle.
Scenario on_segment_of_search(Scenario base);

/// Every combination of the space, in the order of its lists; the same work under two names is there once (sequence
/// parallelism without tensor parallelism, sharding without replicas). Where tensor * pipeline does not divide the GPUs the choice
/// has data 0: it is no plan, and counts as one that was considered.
std::vector<PlanChoice> enumerate_plans(const Scenario& base, const SearchSpace& space);

/// The same in two steps, of which the second can be taken on several threads and need not keep all plans at once: every combination of
/// tensor, pipeline, context, data and micro_batch, and the plans with those of one.
std::vector<PlanChoice> enumerate_heads(const Scenario& base, const SearchSpace& space);
std::vector<PlanChoice> enumerate_plans(const Scenario& base, const SearchSpace& space,
                                        const PlanChoice& head);

/// The choice as a plan on the space's cluster, or why it cannot be one.
std::variant<Plan, std::vector<PlanRejection>> lay_out(const Scenario& base,
                                                       const SearchSpace& space,
                                                       const PlanChoice& choice);

/// The same with what makes the plans of this cluster; the plan holds until it makes another.
std::variant<const Plan*, std::vector<PlanRejection>> lay_out(const Scenario& base,
                                                              const SearchSpace& space,
                                                              const PlanChoice& choice,
                                                              PlanMaker& maker);

/// The same for a plan that is tried: in a space that balances layers, `choice` gets those of its stages.
std::variant<const Plan*, std::vector<PlanRejection>> lay_out_as_tried(const Scenario& base,
                                                                       const SearchSpace& space,
                                                                       PlanChoice& choice,
                                                                       PlanMaker& maker);

}  // namespace windtunnel
