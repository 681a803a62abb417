#include "importers/rank_verdict.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "core/mapped.hpp"
#include "core/quantile.hpp"
#include "core/text_list.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {

double student_tail(double t, double degrees_of_freedom) {
  return boost::math::cdf(boost::math::complement(boost::math::students_t(degrees_of_freedom), t));
}

OutlierTest::OutlierTest(const std::vector<double>& deviations, double least_scatter)
    : count_(deviations.size()), scatter_(least_scatter) {
  if (deviations.empty()) return;
  constexpr double normal_over_median =
      1.4826;  // standard deviation over the median size, of a normal distribution
  const auto size = [](double deviation) { return std::abs(deviation); };
  scatter_ = std::max(scatter_, normal_over_median * median_of(mapped(deviations, size)));
}

double OutlierTest::degrees_of_freedom() const {
  constexpr double efficiency = 0.37;
  return efficiency * static_cast<double>(count_ - 1);
}

double OutlierTest::least_outlier() const {
  if (count_ < 3) return std::numeric_limits<double>::infinity();
  const double share = false_alarm_rate / static_cast<double>(count_);
  // In double precision alone: tables of long doubles are computed as the program starts, and valgrind has none.
  using InDoubles = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
  const boost::math::students_t_distribution<double, InDoubles> distribution(degrees_of_freedom());
  return std::max(least_shown,
                  scatter_ * boost::math::quantile(boost::math::complement(distribution, share)));
}

double OutlierTest::chance_of(double deviation) const {
  if (count_ < 3 || deviation <= 0) return 1;
  if (scatter_ <= 0) return 0;
  const double tail = student_tail(deviation / scatter_, degrees_of_freedom());
  return std::min(1.0, tail * static_cast<double>(count_));
}

namespace {

constexpr double nanosecond = 1e-9;

/// The sums of a rank up to a moment.
struct RankState {
  std::int64_t at = 0;        ///< the moment, on the common clock
  std::int64_t in_calls = 0;  ///< waiting for others and transferring
  std::int64_t charged = 0;   ///< with lags
};

/// Time that others waited for each rank through its own fault, ns over the whole trace.
///
/// The last to enter a call lags behind the last but one. Its own fault is the time for which it has been at work longer than the others of
/// the group since they last were together, time in other calls not counted; without what it was charged for in other calls since then. So
/// ranks that come late because they waited for a slow one elsewhere are not charged, and no lag is charged twice. Messages are calls too,
/// but nobody is charged for them: a receiver waits in any pipeline.
std::vector<std::int64_t> charged_lags(const std::vector<RankTrace>& ranks,
                                       const MatchedRanks& matched) {
  std::vector<RankState> now;
  for (const RankTrace& rank : ranks)
    now.push_back({rank.begin - matched.clock_offsets[now.size()], 0, 0});
  const std::vector<RankState> begins = now;
  std::map<std::pair<std::size_t, std::size_t>, RankState> together;  // last, by rank and group
  const auto since = [&](std::size_t member, std::size_t group) {
    return value_in(together, std::pair{member, group}, begins[member]);
  };
  auto in_order = mapped(matched.calls, [](const MatchedCall& call) { return &call; });
  std::ranges::stable_sort(in_order, {}, [](const auto* call) { return call->last().begin; });
  for (const MatchedCall* call : in_order) {
    const MatchedCall::Part& last = call->last();
    const auto work = [&](const MatchedCall::Part& part) {
      const RankState before = since(part.member, call->group);
      return static_cast<double>(part.begin - before.at -
                                 (now[part.member].in_calls - before.in_calls));
    };
    if (call->kind != CollectiveKind::message) {
      std::vector<double> others;
      for (const auto& part : call->parts)
        if (&part != &last) others.push_back(work(part));
      const std::int64_t excess = std::llround(work(last) - median_of(std::move(others)));
      std::int64_t& charged = now[last.member].charged;
      const std::int64_t already = charged - since(last.member, call->group).charged;
      charged += std::max<std::int64_t>(0, std::min(call->lag(), excess) - already);
    }
    for (const auto& part : call->parts) {
      now[part.member].in_calls += part.end - part.begin;
      now[part.member].at = part.end;
      together[{part.member, call->group}] = now[part.member];
    }
  }
  return mapped(now, &RankState::charged);
}

using NodePair = std::pair<std::int64_t, std::int64_t>;

class RankJudge {
 public:
  explicit RankJudge(const std::vector<RankTrace>& ranks) : ranks_(ranks) {
    verdict_.matched = match_ranks(ranks);
    // Ranks are laid over nodes in order, each with as many as the largest device number says, or more where only some ranks are given
    // (the first of each tensor group), or it is unknown.
    std::int64_t most = 0, last = 0;
    for (const RankTrace& rank : ranks) {
      most = std::max(most, rank.device + 1);
      last = std::max(last, rank.rank);
    }
    for (std::int64_t count = most; most > 1 && count <= std::max(most, last); ++count)
      if (verdict_.gpus_per_node == 0 && std::ranges::all_of(ranks, [&](const RankTrace& rank) {
            return rank.rank % count == rank.device;
          }))
        verdict_.gpus_per_node = count;
  }

  RankVerdict judge() {
    add_paces();
    find_slow_ranks();
    add_rates();
    find_slow_links();
    return std::move(verdict_);
  }

 private:
  std::int64_t node_of(std::size_t member) const {
    const std::int64_t rank = ranks_[member].rank;
    return verdict_.gpus_per_node > 0 ? rank / verdict_.gpus_per_node : rank;
  }
  double steps_of(std::size_t member) const {
    return static_cast<double>(ranks_[member].num_steps);
  }

  // Ranks and nodes that compute slower than their peers and are waited for.

  void add_paces() {
    std::vector<std::size_t> num_calls(ranks_.size(), 0), num_last(ranks_.size(), 0);
    for (const MatchedCall& call : verdict_.matched.calls) {
      if (call.kind == CollectiveKind::message) continue;  // a receiver waits in any pipeline
      for (const auto& part : call.parts) ++num_calls[part.member];
      if (call.lag() > 0) ++num_last[call.last().member];
    }
    const std::vector<std::int64_t> lags = charged_lags(ranks_, verdict_.matched);
    for (std::size_t member = 0; member < ranks_.size(); ++member) {
      RankPace pace;
      pace.member = member;
      pace.compute = static_cast<double>(ranks_[member].compute) * nanosecond / steps_of(member);
      pace.lag = static_cast<double>(lags[member]) * nanosecond / steps_of(member);
      if (num_calls[member] > 0)
        pace.share_last =
            static_cast<double>(num_last[member]) / static_cast<double>(num_calls[member]);
      verdict_.ranks.push_back(pace);
    }
  }

  /// Number of calls of a rank, by description, kind, bytes and size of the group.
  using CallCounts =
      std::map<std::tuple<std::string, CollectiveKind, std::int64_t, std::int64_t>, std::int64_t>;

  void find_slow_ranks() {
    std::map<CallCounts, std::vector<std::size_t>>
        peers;  // with the same calls: the same part of the model
    for (std::size_t member = 0; member < ranks_.size(); ++member) {
      CallCounts calls;
      for (const CollectiveCall& call : ranks_[member].calls)
        ++calls[{ranks_[member].names.at(call.description), call.kind, call.bytes,
                 call.group_size}];
      peers[std::move(calls)].push_back(member);
    }
    std::vector<double> deviations;
    std::vector<std::size_t> judged;
    for (const auto& [calls, members] : peers) {
      const double usual = median_of(
          mapped(members, [&](std::size_t member) { return verdict_.ranks[member].compute; }));
      for (const std::size_t member : members) {
        if (usual > 0)
          verdict_.ranks[member].compute_over_peers = verdict_.ranks[member].compute / usual;
        constexpr std::size_t fewest = 3;  // of two, nobody can tell which is the slow one
        if (members.size() < fewest || !(verdict_.ranks[member].compute > 0)) continue;
        judged.push_back(member);
        deviations.push_back(std::log(verdict_.ranks[member].compute_over_peers));
      }
    }
    const OutlierTest test(deviations);
    verdict_.power.num_judged = judged.size();
    verdict_.power.least_named = std::expm1(test.least_outlier());
    for (std::size_t i = 0; i < judged.size(); ++i) {
      RankPace& pace = verdict_.ranks[judged[i]];
      pace.is_slow = test.is_outlier(deviations[i]);
    }
    std::map<std::int64_t, std::vector<std::size_t>> slow_of_node;
    for (const RankPace& pace : verdict_.ranks)
      if (pace.is_slow) slow_of_node[node_of(pace.member)].push_back(pace.member);
    for (const auto& [node, members] : slow_of_node) {
      const auto on_node = std::ranges::count(
          verdict_.ranks, node, [&](const RankPace& pace) { return node_of(pace.member); });
      const bool whole_node =
          members.size() > 1 && static_cast<std::ptrdiff_t>(members.size()) == on_node;
      if (whole_node) add_slow(RankFinding::Kind::slow_node, node, members);
      for (const std::size_t member : members)
        if (!whole_node) add_slow(RankFinding::Kind::slow_rank, ranks_[member].rank, {member});
    }

    if (!verdict_.power.can_judge()) find_suspect();
  }

  /// Finds the suspect if chance explains every deviation, or no two ranks do the same work: the rank that others wait for most, and the
  /// ranks without a trace that are in process groups with it: those of its smallest groups, until there are enough to judge by.
  void find_suspect() {
    const auto latest = std::ranges::max_element(verdict_.ranks, {}, &RankPace::lag);
    if (latest == verdict_.ranks.end() || !(latest->lag > 0)) return;
    verdict_.power.suspect = latest->member;
    const RankTrace& suspect = ranks_[latest->member];
    constexpr std::size_t enough = 7;
    std::set<std::vector<std::int64_t>> groups;
    for (const CollectiveCall& call : suspect.calls)
      if (call.kind != CollectiveKind::message)
        if (auto group = ranks_in(suspect.names.at(call.ranks))) groups.insert(std::move(*group));
    std::vector<std::vector<std::int64_t>> by_size(groups.begin(), groups.end());
    std::ranges::stable_sort(by_size, {}, &std::vector<std::int64_t>::size);
    std::set<std::int64_t> missing;
    for (const auto& group : by_size)
      if (missing.size() < enough) missing.insert(group.begin(), group.end());
    for (const RankTrace& rank : ranks_) missing.erase(rank.rank);
    verdict_.power.missing_peers.assign(missing.begin(), missing.end());
  }

  /// The time that others wait for this rank beyond what they wait for any.
  double cost_of(const RankPace& pace) const {
    return pace.lag - median_of(mapped(verdict_.ranks, &RankPace::lag));
  }

  /// One rank, or all of a node.
  void add_slow(RankFinding::Kind kind, std::int64_t place,
                const std::vector<std::size_t>& members) {
    const bool is_rank = kind == RankFinding::Kind::slow_rank;
    RankFinding finding;
    finding.kind = kind;
    finding.places = {place};
    const auto paces = mapped(members, [&](std::size_t each) { return verdict_.ranks[each]; });
    // The GPUs of a node are late at once: what waits for them waits once.
    for (const RankPace& pace : paces) finding.cost = std::max(finding.cost, cost_of(pace));
    finding.ratio = median_of(mapped(paces, &RankPace::compute_over_peers));
    finding.text = (is_rank ? "rank " : "all GPUs of node ") + std::to_string(place) +
                   (is_rank ? " computes " : " compute ") + percent_text(finding.ratio - 1) +
                   (is_rank ? " slower than its peers" : " slower than their peers");
    const bool shows_waits =
        std::ranges::any_of(verdict_.ranks, [](const RankPace& pace) { return pace.lag > 0; });
    if (finding.cost > 0)
      finding.text +=
          (is_rank ? " and costs " : " and cost ") + to_text(Seconds{finding.cost}) + " a step";
    else
      finding.text += shows_waits
                          ? ", and no rank waits for that in a collective"
                          : "; the cost does not show, as collectives begin at once on all ranks";
    verdict_.findings.push_back(std::move(finding));
  }

  // Links, network cards or groups that move less than others of their sort.

  /// The calls of a group: by kind and size, their transfer times.
  using GroupCalls = std::map<std::pair<CollectiveKind, std::int64_t>, std::vector<double>>;

  void add_rates() {
    std::vector<GroupCalls> calls(verdict_.matched.groups.size());
    std::vector<std::size_t> num_calls(calls.size(), 0);
    for (const MatchedCall& call : verdict_.matched.calls) {
      ++num_calls[call.group];
      if (call.bytes > 0 && call.transfer() > 0 && call.kind != CollectiveKind::other)
        calls[call.group][{call.kind, call.bytes}].push_back(static_cast<double>(call.transfer()) *
                                                             nanosecond);
    }
    const auto total = [](const auto& call) {
      return static_cast<double>(call.first.second) * static_cast<double>(call.second.size());
    };
    std::map<Alike, std::vector<double>> rates;  // of whole groups
    for (std::size_t group = 0; group < calls.size(); ++group) {
      if (calls[group].empty()) continue;
      const auto most = std::ranges::max_element(calls[group], {}, total);
      GroupRate& rate = verdict_.groups.emplace_back();
      rate.group = group;
      std::tie(rate.kind, rate.bytes) = most->first;
      rate.num_calls = num_calls[group];
      rate.bus_bandwidth = bytes_on_bus(rate) / median_of(most->second);
      std::set<std::int64_t> nodes;
      for (const std::size_t member : group_of(rate).members) nodes.insert(node_of(member));
      rate.nodes.assign(nodes.begin(), nodes.end());
      if (group_of(rate).is_whole) rates[alike(rate)].push_back(rate.bus_bandwidth);
    }
    for (GroupRate& rate : verdict_.groups) {
      constexpr std::size_t fewest = 3;
      if (!group_of(rate).is_whole || rates[alike(rate)].size() < fewest) continue;
      rate.peers_bandwidth = median_of(rates[alike(rate)]);
      const double usual = bytes_on_bus(rate) / rate.peers_bandwidth;
      const std::vector<double>& times = calls[rate.group].at({rate.kind, rate.bytes});
      const double sum = std::accumulate(times.begin(), times.end(), 0.0);
      rate.seconds_above_peers = (sum - usual * static_cast<double>(times.size())) /
                                 steps_of(group_of(rate).members.front());
    }
  }

  const RankGroup& group_of(const GroupRate& rate) const {
    return verdict_.matched.groups[rate.group];
  }
  double bytes_on_bus(const GroupRate& rate) const {
    const auto size = static_cast<double>(group_of(rate).members.size());
    return static_cast<double>(rate.bytes) * bus_factor(rate.kind, size);
  }

  /// Groups whose rates should be alike.
  using Alike = std::tuple<CollectiveKind, std::int64_t, std::size_t, std::size_t>;
  Alike alike(const GroupRate& rate) const {
    return {rate.kind, rate.bytes, group_of(rate).members.size(), rate.nodes.size()};
  }

  static double deviation(const GroupRate& rate) {
    return std::log(rate.peers_bandwidth / rate.bus_bandwidth);
  }

  /// Places at which a group may be slow: between any two of its nodes, between neighbours in a ring over the nodes in order, which NCCL
  /// usually makes, or in the network of one node, which is a pair with itself.
  enum class Places { pairs, neighbours, nodes };

  static std::set<NodePair> places_in(const GroupRate& rate, Places which) {
    std::set<NodePair> places;
    const std::vector<std::int64_t>& nodes = rate.nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        const bool are_next = j + 1 == i || (j == 0 && i + 1 == nodes.size());
        if (which == Places::nodes ? i == j : i != j && (which == Places::pairs || are_next))
          places.insert({nodes[j], nodes[i]});
      }
    return places;
  }

  /// The places in most of the slow groups and in no other group, and in how many.
  std::pair<std::size_t, std::vector<NodePair>> strongest(const std::vector<const GroupRate*>& slow,
                                                          Places which) const {
    std::map<NodePair, std::size_t> counts;
    for (const GroupRate* rate : slow)
      for (const NodePair& place : places_in(*rate, which)) ++counts[place];
    for (const GroupRate& rate : verdict_.groups)
      if (!rate.is_slow && rate.nodes.size() > 1 && rate.peers_bandwidth > 0)
        for (const NodePair& place : places_in(rate, which)) counts.erase(place);
    std::pair<std::size_t, std::vector<NodePair>> best;
    for (const auto& [place, count] : counts) {
      if (count > best.first) best = {count, {}};
      if (count == best.first) best.second.push_back(place);
    }
    return best;
  }

  void find_slow_links() {
    // Groups within nodes and between them scatter differently; of few groups of one sort the scatter is hardly known, so that it is at
    // least that of all.
    std::vector<double> all;
    std::map<bool, std::vector<double>> sorts;  // by whether they are between nodes
    for (const GroupRate& rate : verdict_.groups)
      if (rate.peers_bandwidth > 0) {
        all.push_back(deviation(rate));
        sorts[rate.nodes.size() > 1].push_back(deviation(rate));
      }
    for (GroupRate& rate : verdict_.groups)
      if (rate.peers_bandwidth > 0)
        rate.is_slow = OutlierTest(all, OutlierTest(sorts[rate.nodes.size() > 1]).scatter())
                           .is_outlier(deviation(rate));
    std::vector<const GroupRate*> between;
    for (const GroupRate& rate : verdict_.groups)
      if (rate.is_slow && rate.nodes.size() > 1)
        between.push_back(&rate);
      else if (rate.is_slow)
        add_slow_group(rate);
    // Names what explains most of the slow groups, then of those that it does not explain.
    while (!between.empty()) {
      auto links = strongest(between, Places::pairs);
      if (links.second.size() != 1)
        if (auto neighbours = strongest(between, Places::neighbours); neighbours.second.size() == 1)
          links = std::move(neighbours);
      const auto nodes = strongest(between, Places::nodes);
      if (nodes.second.size() == 1 && nodes.first > links.first) links = nodes;
      if (links.second.size() == 1) {
        between = explained(std::move(between), links.second.front());
        continue;
      }
      for (const GroupRate* rate : between) add_slow_group(*rate);
      between.clear();
    }
  }

  std::vector<const GroupRate*> explained(std::vector<const GroupRate*> slow, NodePair place) {
    RankFinding finding;
    const bool is_link = place.first != place.second;
    finding.kind = is_link ? RankFinding::Kind::slow_link : RankFinding::Kind::slow_network_of_node;
    finding.places = {place.first, place.second};
    finding.places.resize(is_link ? 2 : 1);
    const auto holds = [&](const GroupRate* rate) {
      const std::set<std::int64_t> nodes(rate->nodes.begin(), rate->nodes.end());
      return nodes.contains(place.first) && nodes.contains(place.second);
    };
    const auto first_kept = std::stable_partition(slow.begin(), slow.end(), holds);
    const std::string kind = verdict_.gpus_per_node > 0 ? "node" : "rank",
                      first = std::to_string(place.first);
    add_rates(
        finding, {slow.begin(), first_kept},
        is_link ? "the link between " + kind + "s " + first + " and " + std::to_string(place.second)
                : "the network of " + kind + " " + first);
    slow.erase(slow.begin(), first_kept);
    return slow;
  }

  void add_slow_group(const GroupRate& rate) {
    RankFinding finding;
    finding.kind = RankFinding::Kind::slow_group;
    for (const std::size_t member : group_of(rate).members)
      finding.places.push_back(ranks_[member].rank);
    add_rates(finding, {&rate}, "the group of ranks " + rank_list(finding.places));
  }

  /// Adds a finding with the rates of the slowest group, and what the rank that loses most loses in all of them.
  void add_rates(RankFinding finding, const std::vector<const GroupRate*>& slow,
                 const std::string& what) {
    const GroupRate* const worst = *std::ranges::min_element(slow, {}, [](const GroupRate* rate) {
      return rate->bus_bandwidth / rate->peers_bandwidth;
    });
    finding.bandwidth = worst->bus_bandwidth;
    finding.usual_bandwidth = worst->peers_bandwidth;
    std::map<std::size_t, double> losses;
    for (const GroupRate* rate : slow)
      for (const std::size_t member : group_of(*rate).members)
        losses[member] += rate->seconds_above_peers;
    for (const auto& [member, loss] : losses) finding.cost = std::max(finding.cost, loss);
    const auto giga = [](double rate) { return significant_text(rate * 1e-9, 3); };
    finding.text = what + " moves " + giga(finding.bandwidth) + " of " +
                   giga(finding.usual_bandwidth) + " GB/s, and transfers take " +
                   to_text(Seconds{finding.cost}) + " a step longer";
    verdict_.findings.push_back(std::move(finding));
  }

  const std::vector<RankTrace>& ranks_;
  RankVerdict verdict_;
};

/// The mark of a group: how its ranks are written, its name, and the two ends of a message.
struct GroupKey {
  std::string ranks, name;
  bool is_message = false;
  std::int64_t source = -1, destination = -1;
  auto operator<=>(const GroupKey&) const = default;
};

/// Calls of a group, by rank and in order; their size as they say it, 0 where they do not.
struct GroupCalls {
  std::string description;
  std::int64_t size = 0;
  std::map<std::size_t, std::vector<const CollectiveCall*>> calls;
};

/// Nothing where the ranks of the call are not known.
std::optional<GroupKey> key_of(const RankTrace& rank, const CollectiveCall& call) {
  GroupKey key{rank.names.at(call.ranks), rank.names.at(call.group),
               call.kind == CollectiveKind::message, -1, -1};
  if (!key.is_message)
    return key.ranks.empty() && key.name.empty() ? std::nullopt : std::optional(key);
  const auto ranks = ranks_in(key.ranks);
  const bool is_pair = (ranks && ranks->size() == 2) || call.group_size == 2;
  const bool has_ends =
      call.source >= 0 && call.destination >= 0 && call.source != call.destination;
  if (has_ends) std::tie(key.source, key.destination) = std::pair{call.source, call.destination};
  return has_ends || is_pair ? std::optional(key) : std::nullopt;
}

void match_group(const GroupKey& key, const GroupCalls& group, MatchedRanks& matched) {
  RankGroup found{key.name, group.description, {}, true};
  for (const auto& [member, calls] : group.calls) found.members.push_back(member);
  const auto num_members = static_cast<std::int64_t>(found.members.size());
  found.is_whole = group.size == num_members;
  const bool too_many = group.size > 0 && num_members > group.size;
  if (num_members < 2 || too_many) {
    for (const auto& [member, calls] : group.calls) matched.num_unmatched += calls.size();
    return;
  }
  const std::size_t number = matched.groups.size();
  matched.groups.push_back(std::move(found));
  // The numbers of messages count each rank's own, to and from all others.
  const bool numbered = !key.is_message && std::ranges::all_of(group.calls, [](const auto& rank) {
    std::set<std::int64_t> numbers;
    return std::ranges::all_of(rank.second, [&](const CollectiveCall* call) {
      return call->sequence >= 0 && numbers.insert(call->sequence).second;
    });
  });
  const std::size_t count = group.calls.begin()->second.size();
  const bool same_counts = std::ranges::all_of(
      group.calls, [count](const auto& rank) { return rank.second.size() == count; });
  std::map<std::int64_t, std::vector<std::pair<std::size_t, const CollectiveCall*>>> together;
  for (const auto& [member, calls] : group.calls)
    for (std::size_t i = 0; i < calls.size(); ++i)
      if (numbered || same_counts)
        together[numbered ? calls[i]->sequence : static_cast<std::int64_t>(i)].emplace_back(
            member, calls[i]);
      else
        ++matched.num_unmatched;
  for (const auto& [at, parts] : together) {
    const CollectiveCall& first = *parts.front().second;
    const bool agree = std::ranges::all_of(parts, [&](const auto& part) {
      return part.second->kind == first.kind && part.second->bytes == first.bytes;
    });
    if (!agree || parts.size() != group.calls.size()) {
      matched.num_unmatched += parts.size();
      continue;
    }
    MatchedCall call{number, first.kind, first.bytes, {}};
    for (const auto& [member, part] : parts) call.parts.push_back({member, part->begin, part->end});
    matched.calls.push_back(std::move(call));
  }
}

void align_clocks(MatchedRanks& matched, std::size_t num_ranks) {
  // Distances of each rank's ends from the mean end of its calls, ns, by rank and group
  std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> of_calls;
  for (const MatchedCall& call : matched.calls) {
    const std::int64_t base = call.parts.front().end;
    double mean = 0;
    for (const auto& part : call.parts) mean += static_cast<double>(part.end - base);
    mean /= static_cast<double>(call.parts.size());
    for (const auto& part : call.parts)
      of_calls[{part.member, call.group}].push_back(static_cast<double>(part.end - base) - mean);
  }
  std::vector<std::vector<std::pair<std::size_t, double>>> leads(num_ranks);  // medians
  for (auto& [key, values] : of_calls)
    leads[key.first].emplace_back(key.second, upper_median_of(std::move(values)));
  std::vector<double> offsets(num_ranks, 0);
  constexpr int most_sweeps = 300;
  constexpr double settled = 10;  // ns, below what a profiler resolves
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    double largest = 0;
    std::vector<double> group_means;
    for (const RankGroup& group : matched.groups) {
      double sum = 0;
      for (const std::size_t member : group.members) sum += offsets[member];
      group_means.push_back(sum / static_cast<double>(group.members.size()));
    }
    for (std::size_t member = 0; member < num_ranks; ++member) {
      if (leads[member].empty()) continue;
      double sum = 0;
      for (const auto& [group, lead] : leads[member]) sum += lead + group_means[group];
      const double offset = sum / static_cast<double>(leads[member].size());
      largest = std::max(largest, std::abs(offset - offsets[member]));
      offsets[member] = (offset + offsets[member]) / 2;  // damped: pairs would swing
    }
    if (largest < settled) break;
  }
  for (const double offset : offsets) matched.clock_offsets.push_back(std::llround(offset));
  for (MatchedCall& call : matched.calls)
    for (MatchedCall::Part& part : call.parts) {
      part.begin -= matched.clock_offsets[part.member];
      part.end -= matched.clock_offsets[part.member];
    }
}

}  // namespace

std::string rank_list(const std::vector<std::int64_t>& ranks) {
  constexpr std::size_t most_named = 8;
  return listed(
      ranks, [](std::int64_t rank) { return std::to_string(rank); }, most_named);
}

RankVerdict judge_ranks(const std::vector<RankTrace>& ranks) { return RankJudge(ranks).judge(); }

const MatchedCall::Part& MatchedCall::last() const {
  return *std::ranges::max_element(parts, {}, &Part::begin);
}

std::int64_t MatchedCall::lag() const {
  const Part& latest = last();
  std::optional<std::int64_t> before;  // which no part is less than
  for (const Part& part : parts)
    if (&part != &latest) before = std::max(before, std::optional(part.begin));
  return before ? latest.begin - *before : 0;
}

std::int64_t MatchedCall::transfer() const {
  const auto length = [](const Part& part) { return part.end - part.begin; };
  return length(*std::ranges::min_element(parts, {}, length));
}

std::optional<std::vector<std::int64_t>> ranks_in(const std::string& text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  std::vector<std::int64_t> ranks;
  const char *at = text.data() + 1, *const end = text.data() + text.size() - 1;
  while (at < end) {
    std::int64_t rank = 0;
    const auto [next, error] = std::from_chars(at, end, rank);
    if (error != std::errc() || rank < 0) return std::nullopt;
    ranks.push_back(rank);
    at = next;
    while (at < end && (*at == ',' || *at == ' ')) ++at;
  }
  return ranks;
}

MatchedRanks match_ranks(const std::vector<RankTrace>& ranks) {
  MatchedRanks matched;
  std::map<GroupKey, GroupCalls> groups;
  for (std::size_t member = 0; member < ranks.size(); ++member) {
    const RankTrace& rank = ranks[member];
    auto calls = mapped(rank.calls, [](const CollectiveCall& call) { return &call; });
    std::ranges::stable_sort(calls, {}, &CollectiveCall::begin);
    for (const CollectiveCall* call : calls) {
      const std::optional<GroupKey> key = key_of(rank, *call);
      if (!key) {
        ++matched.num_unmatched;
        continue;
      }
      GroupCalls& group = groups[*key];
      group.description = rank.names.at(call->description);
      const auto of_group = ranks_in(key->ranks);
      group.size = std::max(group.size, key->is_message ? 2
                                        : of_group ? static_cast<std::int64_t>(of_group->size())
                                                   : call->group_size);
      group.calls[member].push_back(call);
    }
  }
  for (const auto& [key, group] : groups) match_group(key, group, matched);
  align_clocks(matched, ranks.size());
  return matched;
}

}  // namespace windtunnel
