#pragma once

#include <string_view>
#include <vector>

#include "scenario/key_table.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// The values that are tried for each key of a plan: the `search` block of a scenario with its defaults filled in.
struct SearchSpace {
  int gpus = 0;          ///< that every plan uses
  ClusterShape cluster;  ///< their nodes
  /// In the order of search_keys(), as Key::get has them. Without values for `data`: whatever tensor and pipeline leave; for `schedule`:
  /// the file's, or the default one for several chunks.
  std::vector<std::vector<int>> values;

  /// Of the key of this name.
  const std::vector<int>& of(std::string_view key) const;
};

/// Largest microbatch that is tried without being asked for: beyond it the vTrain sweep, the widest measured one, has no
/// fast plan.
inline constexpr int largest_default_micro_batch = 32;

/// The space around `base`. The GPUs are those that the file's own plan uses. Left out of the block:
///  - tensor: the divisors of a node's GPUs (of the smallest node's, where they differ);
///  - pipeline: the divisors of all GPUs, up to the model's layers;
///  - data: the rest of the GPUs;
///  - micro_batch: the powers of two up to 32;
///  - everything else: what the file says.
/// Values that are given twice are tried once. InputError when there are more than a million combinations.
SearchSpace search_space(const Scenario& base);

}  // namespace windtunnel
