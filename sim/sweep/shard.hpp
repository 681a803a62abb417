#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace windtunnel {

/// The points k with k % count == index: what one of several processes that know nothing of each other does of a sweep.
struct Shard {
  std::size_t index = 0, count = 1;
  std::string
      origin;  ///< where it was read from: "--shard", "SLURM_ARRAY_TASK_ID"; empty: the whole sweep

  bool holds(std::size_t point) const { return point % count == index; }
};

/// "i/n" with i from 0 to n-1, or from 1 to n: n/n is 0/n, so both ways of counting give every point once. Nothing when it is neither.
std::optional<Shard> parse_shard(const std::string& text);

/// The shard that the environment assigns, first found first: a task of a Slurm array (and in it, of an srun step), Open MPI, PMI, an srun
/// step; else the whole. `variable` gives the value of an environment variable, empty when it is not set.
Shard shard_from_environment(const std::function<std::string(const std::string&)>& variable);

}  // namespace windtunnel
