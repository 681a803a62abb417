#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "importers/gpu_trace.hpp"

namespace windtunnel {

/// One rank's trace, for comparison with the others.
struct RankTrace {
  std::int64_t rank = 0;
  std::int64_t device = 0;   ///< of the GPU in its node, as the profiler numbers them
  std::int64_t compute = 0;  ///< ns in which it computes, of the whole trace
  std::int64_t num_steps = 1;
  std::int64_t begin = 0;  ///< of its GPU work, ns
  std::vector<CollectiveCall> calls;
  std::vector<std::string> names;  ///< GpuTrace::names, which the calls refer to
};

/// Ranks that communicate with each other.
struct RankGroup {
  std::string name;                  ///< of the process group; may be empty
  std::string description;           ///< "TENSOR_MODEL_PARALLEL_GROUP"; may be empty
  std::vector<std::size_t> members;  ///< in the list of ranks, ascending
  bool is_whole = true;              ///< whether a trace of each of its ranks is given
};

/// One call as all its ranks saw it, on one clock.
struct MatchedCall {
  std::size_t group = 0;
  CollectiveKind kind = CollectiveKind::other;
  std::int64_t bytes = 0;  ///< 0: not said
  struct Part {
    std::size_t member = 0;  ///< in the list of ranks
    std::int64_t begin = 0, end = 0;
  };
  std::vector<Part> parts;

  const Part& last() const;  ///< who came last: the others waited for it
  /// How long the others waited for the last one: its lag behind the last but one.
  std::int64_t lag() const;
  /// How long the transfer took once all had come: the shortest of the kernels.
  std::int64_t transfer() const;
};

/// Calls of several ranks, matched.
struct MatchedRanks {
  std::vector<RankGroup> groups;
  std::vector<MatchedCall> calls;
  std::vector<std::int64_t> clock_offsets;  ///< ns, of each rank's clock to the mean
  std::size_t num_unmatched = 0;  ///< parts of calls whose others are missing or different
};

/// "[0, 8, 16]" as numbers; nothing where ranks are left out ("[0, 1, ..., 63]") or it is no list.
std::optional<std::vector<std::int64_t>> ranks_in(const std::string& text);

/// Matches by process group, then by sequence number where all calls have one, else in order where all ranks of the group made
/// the same number of calls; kind and size must agree. Calls that do not say their group are not matched. Messages are matched by source and destination, or in groups of two.
/// Clocks of hosts differ, and all ranks leave a call at the same time: offsets are chosen so that they do, in the mean over groups of
/// the median over calls.
MatchedRanks match_ranks(const std::vector<RankTrace>& ranks);

}  // namespace windtunnel
