#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "importers/rank_matching.hpp"

namespace windtunnel {

/// One rank beside its peers: those that make the same calls, and so do the same work.
struct RankPace {
  std::size_t member = 0;  ///< in the list of ranks
  double compute = 0;      ///< s per step
  double compute_over_peers = 1;
  double lag = 0;         ///< s per step that others waited for it by its own doing (rank_lags.hpp)
  double share_last = 0;  ///< of its calls: it came last
  bool is_slow = false;   ///< computes longer than chance allows
};

/// Rate of one group in its most frequent large call.
struct GroupRate {
  std::size_t group = 0;
  CollectiveKind kind = CollectiveKind::other;
  std::int64_t bytes = 0;
  std::size_t num_calls = 0;  ///< of any kind
  double bus_bandwidth = 0;   ///< bytes/s, the median of its calls of that kind and size
  double peers_bandwidth =
      0;  ///< the median over groups with the same call, size and number of nodes
  double seconds_above_peers =
      0;  ///< per step, in calls of that kind and size, of transfers at that median
  std::vector<std::int64_t>
      nodes;             ///< that its ranks are on; the ranks themselves where nodes are unknown
  bool is_slow = false;  ///< moves less than chance allows
};

/// One thing that is wrong.
struct RankFinding {
  enum class Kind {
    slow_rank,
    slow_node,
    slow_link,
    slow_network_of_node,
    slow_group
  } kind = Kind::slow_rank;
  std::vector<std::int64_t>
      places;        ///< the rank; the node; the two ends of the link; the ranks of the group
  double ratio = 1;  ///< of computing to that of peers
  double bandwidth = 0, usual_bandwidth = 0;  ///< bytes/s
  double cost =
      0;  ///< s per step: waited for by others, or longer transfers; of parts that wait together, the longest
  std::string text;  ///< "rank 11 computes 25.1 % slower than its peers and costs 22.4 ms a step"
};
const char* name_of(RankFinding::Kind kind);  ///< "slow-rank"

/// How far the traces tell a slow rank from chance.
struct RankPower {
  /// A rank that computes this much longer than its peers, as a fraction, would be named, and one that does so by less would not. Infinite
  /// where no rank has two peers.
  double least_named = std::numeric_limits<double>::infinity();
  std::size_t num_judged = 0;  ///< ranks with two peers or more
  /// Whether a rank of half the speed of its peers would be named.
  bool can_judge() const { return least_named <= 1; }
  /// Whom the others wait for most, where nobody can be judged, and ranks that do the same work and whose traces are not given.
  std::optional<std::size_t> suspect;  ///< in the list of ranks
  std::vector<std::int64_t> missing_peers;
};

/// Who makes a job slow, out of the traces of its ranks.
struct RankVerdict {
  MatchedRanks matched;
  RankPower power;
  std::vector<RankPace> ranks;    ///< by rank
  std::vector<GroupRate> groups;  ///< those whose sizes are known
  std::vector<RankFinding> findings;
  std::int64_t gpus_per_node = 0;  ///< 0: unknown, as where each process sees one GPU only
};

/// Judges by outlier tests (OutlierTest): of computing over that of peers, and of bus bandwidth over that of like groups. A slow link is the one pair of nodes that is in slow groups and in no other.
RankVerdict judge_ranks(const std::vector<RankTrace>& ranks);

/// Bytes that each rank sends in an optimal algorithm, over the bytes of the call: bus bandwidth as nccl-tests counts it.
double bus_factor(CollectiveKind kind, std::size_t num_ranks);

}  // namespace windtunnel
