#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "importers/outliers.hpp"
#include "importers/rank_judges.hpp"
#include "importers/rate_matrix.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using detail::JudgedRanks;
using detail::nanosecond;

using NodePair = std::pair<std::int64_t, std::int64_t>;

class RateJudge {
 public:
  explicit RateJudge(const JudgedRanks& judged) : judged_(judged) {}

  void judge() {
    add_rates();
    find_slow_groups();
    find_slow_links();
  }

 private:
  const std::vector<RankTrace>& ranks() const { return *judged_.ranks; }
  RankVerdict& verdict() const { return *judged_.verdict; }

  /// What calls a group has: by kind and size, their transfer times.
  using GroupCalls = std::map<std::pair<CollectiveKind, std::int64_t>, std::vector<double>>;

  void add_rates() {
    std::vector<GroupCalls> calls(verdict().matched.groups.size());
    std::vector<std::size_t> num_calls(calls.size(), 0);
    for (const MatchedCall& call : verdict().matched.calls) {
      ++num_calls[call.group];
      if (call.bytes > 0 && call.transfer() > 0 && call.kind != CollectiveKind::other)
        calls[call.group][{call.kind, call.bytes}].push_back(static_cast<double>(call.transfer()) *
                                                             nanosecond);
    }
    for (std::size_t group = 0; group < calls.size(); ++group)
      if (!calls[group].empty()) add_rate(group, calls[group], num_calls[group]);
    compare_rates(calls);
  }

  void add_rate(std::size_t group, const GroupCalls& calls, std::size_t num_calls) {
    const RankGroup& ranks = verdict().matched.groups[group];
    const auto total = [](const auto& call) {
      return static_cast<double>(call.first.second) * static_cast<double>(call.second.size());
    };
    const auto most =
        std::max_element(calls.begin(), calls.end(),
                         [&](const auto& a, const auto& b) { return total(a) < total(b); });
    GroupRate rate;
    rate.group = group;
    std::tie(rate.kind, rate.bytes) = most->first;
    rate.num_calls = num_calls;
    rate.bus_bandwidth = static_cast<double>(rate.bytes) *
                         bus_factor(rate.kind, ranks.members.size()) / median_of(most->second);
    std::set<std::int64_t> nodes;
    for (const std::size_t member : ranks.members) nodes.insert(judged_.node_of(member));
    rate.nodes.assign(nodes.begin(), nodes.end());
    verdict().groups.push_back(std::move(rate));
  }

  bool is_whole(const GroupRate& rate) const {
    return verdict().matched.groups[rate.group].is_whole;
  }

  /// Groups whose rates should be alike.
  using Alike = std::tuple<CollectiveKind, std::int64_t, std::size_t, std::size_t>;
  Alike alike(const GroupRate& rate) const {
    return {rate.kind, rate.bytes, verdict().matched.groups[rate.group].members.size(),
            rate.nodes.size()};
  }

  void compare_rates(const std::vector<GroupCalls>& calls) {
    std::map<Alike, std::vector<double>> rates;
    for (const GroupRate& rate : verdict().groups)
      if (is_whole(rate)) rates[alike(rate)].push_back(rate.bus_bandwidth);
    for (GroupRate& rate : verdict().groups) {
      if (!is_whole(rate)) continue;
      constexpr std::size_t fewest = 3;
      if (rates[alike(rate)].size() < fewest) continue;
      rate.peers_bandwidth = median_of(rates[alike(rate)]);
      const double factor =
          bus_factor(rate.kind, verdict().matched.groups[rate.group].members.size());
      const double usual = static_cast<double>(rate.bytes) * factor / rate.peers_bandwidth;
      const std::vector<double>& times = calls[rate.group].at({rate.kind, rate.bytes});
      const double sum = std::accumulate(times.begin(), times.end(), 0.0);
      const std::size_t first = verdict().matched.groups[rate.group].members.front();
      rate.seconds_above_peers =
          (sum - usual * static_cast<double>(times.size())) / judged_.steps_of(first);
    }
  }

  static double deviation(const GroupRate& rate) {
    return std::log(rate.peers_bandwidth / rate.bus_bandwidth);
  }

  /// Groups within nodes and between them scatter differently; of few groups of one sort the scatter is hardly known, so that it is at
  /// least that of all.
  void find_slow_groups() {
    std::vector<double> all;
    std::array<std::vector<double>, 2> sorts;
    const auto sort_of = [](const GroupRate& rate) {
      return rate.nodes.size() > 1 ? std::size_t{1} : std::size_t{0};
    };
    for (const GroupRate& rate : verdict().groups) {
      if (!(rate.peers_bandwidth > 0)) continue;
      all.push_back(deviation(rate));
      sorts[sort_of(rate)].push_back(deviation(rate));
    }
    for (GroupRate& rate : verdict().groups)
      if (rate.peers_bandwidth > 0)
        rate.is_slow = OutlierTest(all, OutlierTest(sorts[sort_of(rate)]).scatter())
                           .is_outlier(deviation(rate));
  }

  static std::set<NodePair> pairs_in(const GroupRate& rate) {
    std::set<NodePair> pairs;
    for (std::size_t i = 0; i < rate.nodes.size(); ++i)
      for (std::size_t j = i + 1; j < rate.nodes.size(); ++j)
        pairs.insert({rate.nodes[i], rate.nodes[j]});
    return pairs;
  }

  /// Neighbours in a ring over the nodes in order, which NCCL usually makes.
  static std::set<NodePair> neighbours_in(const GroupRate& rate) {
    std::set<NodePair> pairs;
    for (std::size_t i = 0; i < rate.nodes.size(); ++i) {
      const std::int64_t a = rate.nodes[i], b = rate.nodes[(i + 1) % rate.nodes.size()];
      if (a != b) pairs.insert(std::minmax(a, b));
    }
    return pairs;
  }

  /// Places that are in slow groups and in no other: how many of the slow groups each explains.
  template <typename Place, typename PlacesIn>
  std::map<Place, std::size_t> suspects(const std::vector<const GroupRate*>& slow,
                                        const PlacesIn& places_in) const {
    std::map<Place, std::size_t> counts;
    for (const GroupRate* rate : slow)
      for (const Place& place : places_in(*rate)) ++counts[place];
    for (const GroupRate& rate : verdict().groups) {
      if (rate.is_slow || rate.nodes.size() < 2 || !(rate.peers_bandwidth > 0)) continue;
      for (const Place& place : places_in(rate)) counts.erase(place);
    }
    return counts;
  }

  template <typename Place>
  static std::pair<std::size_t, std::vector<Place>> strongest(
      const std::map<Place, std::size_t>& counts) {
    std::pair<std::size_t, std::vector<Place>> best;
    for (const auto& [place, count] : counts) {
      if (count > best.first) best = {count, {}};
      if (count == best.first) best.second.push_back(place);
    }
    return best;
  }

  void find_slow_links() {
    std::vector<const GroupRate*> between;
    for (const GroupRate& rate : verdict().groups) {
      if (!rate.is_slow) continue;
      if (rate.nodes.size() > 1)
        between.push_back(&rate);
      else
        add_slow_group(rate);
    }
    while (!between.empty()) between = without_strongest(std::move(between));
  }

  /// Names what explains most of the slow groups; the groups that it does not explain.
  std::vector<const GroupRate*> without_strongest(std::vector<const GroupRate*> slow) {
    auto links = strongest(suspects<NodePair>(slow, pairs_in));
    if (links.second.size() != 1) {
      auto neighbours = strongest(suspects<NodePair>(slow, neighbours_in));
      if (neighbours.second.size() == 1) links = std::move(neighbours);
    }
    const auto nodes =
        strongest(suspects<std::int64_t>(slow, [](const GroupRate& rate) { return rate.nodes; }));
    if (nodes.second.size() == 1 && nodes.first > links.first)
      return explained(std::move(slow), {nodes.second.front(), nodes.second.front()});
    if (links.second.size() == 1) return explained(std::move(slow), links.second.front());
    for (const GroupRate* rate : slow) add_slow_group(*rate);
    return {};
  }

  std::vector<const GroupRate*> explained(std::vector<const GroupRate*> slow, NodePair place) {
    RankFinding finding;
    finding.kind = place.first == place.second ? RankFinding::Kind::slow_network_of_node
                                               : RankFinding::Kind::slow_link;
    finding.places = {place.first, place.second};
    if (place.first == place.second) finding.places.pop_back();
    const auto holds = [&](const GroupRate* rate) {
      return std::find(rate->nodes.begin(), rate->nodes.end(), place.first) != rate->nodes.end() &&
             std::find(rate->nodes.begin(), rate->nodes.end(), place.second) != rate->nodes.end();
    };
    const auto first_kept = std::stable_partition(slow.begin(), slow.end(), holds);
    std::vector<const GroupRate*> found(slow.begin(), first_kept);
    add_rates(finding, found);
    const std::string kind = verdict().gpus_per_node > 0 ? "node" : "rank",
                      first = std::to_string(place.first);
    finding.text =
        (finding.kind == RankFinding::Kind::slow_link
             ? "the link between " + kind + "s " + first + " and " + std::to_string(place.second)
             : "the network of " + kind + " " + first) +
        text_of_rates(finding);
    verdict().findings.push_back(std::move(finding));
    slow.erase(slow.begin(), first_kept);
    return slow;
  }

  /// The rates of the slowest group, and what the rank that loses most loses in all of them.
  void add_rates(RankFinding& finding, const std::vector<const GroupRate*>& slow) const {
    const GroupRate* const worst =
        *std::min_element(slow.begin(), slow.end(), [](const GroupRate* a, const GroupRate* b) {
          return a->bus_bandwidth / a->peers_bandwidth < b->bus_bandwidth / b->peers_bandwidth;
        });
    finding.bandwidth = worst->bus_bandwidth;
    finding.usual_bandwidth = worst->peers_bandwidth;
    std::map<std::size_t, double> losses;
    for (const GroupRate* rate : slow)
      for (const std::size_t member : verdict().matched.groups[rate->group].members)
        losses[member] += rate->seconds_above_peers;
    for (const auto& [member, loss] : losses) finding.cost = std::max(finding.cost, loss);
  }

  static std::string text_of_rates(const RankFinding& finding) {
    const auto giga = [](double rate) { return significant_text(rate * 1e-9, 3); };
    return " moves " + giga(finding.bandwidth) + " of " + giga(finding.usual_bandwidth) +
           " GB/s, and transfers take " + to_text(Seconds{finding.cost}) + " a step longer";
  }

  void add_slow_group(const GroupRate& rate) {
    RankFinding finding;
    finding.kind = RankFinding::Kind::slow_group;
    std::string list;
    constexpr std::size_t most_named = 8;
    const auto& members = verdict().matched.groups[rate.group].members;
    for (const std::size_t member : members) finding.places.push_back(ranks()[member].rank);
    for (std::size_t i = 0; i < std::min(members.size(), most_named); ++i)
      list += (i > 0 ? ", " : "") + std::to_string(finding.places[i]);
    if (members.size() > most_named) list += ", …";
    add_rates(finding, {&rate});
    finding.text = "the group of ranks " + list + text_of_rates(finding);
    verdict().findings.push_back(std::move(finding));
  }

  JudgedRanks judged_;
};

}  // namespace

void detail::judge_rates(const JudgedRanks& judged) { RateJudge(judged).judge(); }

}  // namespace windtunnel
