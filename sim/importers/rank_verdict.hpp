#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "importers/gpu_trace.hpp"

namespace windtunnel {

/// Test for a part, among many equal ones, that differs from the others by more than their scatter.
///
/// `deviations` are logarithms of each part's figure over the median of its peers. Their scatter is 1.4826 times their median size
/// (the standard deviation of a normal distribution, untouched by up to half of the parts being faulty). A part's deviation
/// over the scatter is compared with Student's t distribution with 0.37 (n - 1) degrees of freedom, 0.37 being the efficiency of
/// that estimate of scatter (Rousseeuw and Croux, J. Am. Stat. Assoc. 88, 1993), and the probability is multiplied by n, for as many
/// parts were looked at (Bonferroni). An outlier's is below `false_alarm_rate`: that many healthy jobs have one by chance.
class OutlierTest {
 public:
  /// The scatter is at least `least_scatter`: that of some of the parts, which scatter more than all.
  explicit OutlierTest(const std::vector<double>& deviations, double least_scatter = 0);

  /// True if this deviation is larger than chance explains for any of the parts.
  bool is_outlier(double deviation) const {
    return deviation >= least_shown && chance_of(deviation) < false_alarm_rate;
  }
  /// The probability that any of so many healthy parts deviates by as much, upwards.
  double chance_of(double deviation) const;
  /// The smallest deviation that is an outlier: what a fault must make of a part to be told from chance. Infinite of fewer than three parts.
  double least_outlier() const;
  double scatter() const { return scatter_; }

  static constexpr double false_alarm_rate = 0.001;
  /// The last digit of the percentages that verdicts show: parts of a simulation without noise differ by less, by rounding.
  static constexpr double least_shown = 0.001;

 private:
  double degrees_of_freedom() const;

  std::size_t count_;
  double scatter_;
};

/// The probability that a variable of Student's t distribution exceeds t > 0.
double student_tail(double t, double degrees_of_freedom);

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
  /// Time that the others waited for the last one: its lag behind the last but one.
  std::int64_t lag() const;
  /// Duration of the transfer once all had entered: the shortest of the kernels.
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

/// One rank compared with its peers: those that make the same calls, and so do the same work.
struct RankPace {
  std::size_t member = 0;  ///< in the list of ranks
  double compute = 0;      ///< s per step
  double compute_over_peers = 1;
  double lag = 0;         ///< s per step that others waited for it by its own doing (LagCharger)
  double share_last = 0;  ///< of its calls: it came last, and others waited
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

/// Power of the traces to distinguish a slow rank from chance.
struct RankPower {
  /// A rank that computes this much longer than its peers, as a fraction, would be named, and one that does so by less would not. Infinite
  /// where no rank has two peers.
  double least_named = std::numeric_limits<double>::infinity();
  std::size_t num_judged = 0;  ///< ranks with two peers or more
  /// True if a rank of half the speed of its peers would be named.
  bool can_judge() const { return least_named <= 1; }
  /// The rank that others wait for most, if nobody can be judged, and ranks that do the same work and whose traces are not given.
  std::optional<std::size_t> suspect;  ///< in the list of ranks
  std::vector<std::int64_t> missing_peers;
};

/// Verdict on the ranks that make a job slow, from the traces of its ranks.
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

/// "1, 2, 3", of many the first and "…".
std::string rank_list(const std::vector<std::int64_t>& ranks);

}  // namespace windtunnel
