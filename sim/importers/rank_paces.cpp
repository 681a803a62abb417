#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "importers/outliers.hpp"
#include "importers/rank_judges.hpp"
#include "importers/rank_lags.hpp"
#include "importers/rate_matrix.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using detail::JudgedRanks;
using detail::nanosecond;

class PaceJudge {
 public:
  explicit PaceJudge(const JudgedRanks& judged) : judged_(judged) {}

  void judge() {
    add_paces();
    find_slow_ranks();
  }

 private:
  const std::vector<RankTrace>& ranks() const { return *judged_.ranks; }
  RankVerdict& verdict() const { return *judged_.verdict; }

  void add_paces() {
    std::vector<std::size_t> num_calls(ranks().size(), 0), num_last(ranks().size(), 0);
    for (const MatchedCall& call : verdict().matched.calls) {
      if (call.kind == CollectiveKind::message) continue;  // a receiver waits in any pipeline
      for (const auto& part : call.parts) ++num_calls[part.member];
      ++num_last[call.last().member];
    }
    const std::vector<std::int64_t> lags = own_lags(ranks(), verdict().matched);
    for (std::size_t member = 0; member < ranks().size(); ++member) {
      RankPace pace;
      pace.member = member;
      pace.compute =
          static_cast<double>(ranks()[member].compute) * nanosecond / judged_.steps_of(member);
      pace.lag = static_cast<double>(lags[member]) * nanosecond / judged_.steps_of(member);
      if (num_calls[member] > 0)
        pace.share_last =
            static_cast<double>(num_last[member]) / static_cast<double>(num_calls[member]);
      verdict().ranks.push_back(pace);
    }
  }

  /// Ranks with the same calls, by description, kind and size: the same part of the model.
  std::map<std::string, std::vector<std::size_t>> peers() const {
    std::map<std::string, std::vector<std::size_t>> peers;
    for (std::size_t member = 0; member < ranks().size(); ++member) {
      std::map<std::tuple<std::string, CollectiveKind, std::int64_t, std::int64_t>, std::int64_t>
          calls;
      for (const CollectiveCall& call : ranks()[member].calls)
        ++calls[{ranks()[member].names.at(call.description), call.kind, call.bytes,
                 call.group_size}];
      std::string text;
      for (const auto& [call, count] : calls)
        text += std::get<0>(call) + "/" + std::to_string(static_cast<int>(std::get<1>(call))) +
                "/" + std::to_string(std::get<2>(call)) + "/" + std::to_string(std::get<3>(call)) +
                "x" + std::to_string(count) + " ";
      peers[text].push_back(member);
    }
    return peers;
  }

  void find_slow_ranks() {
    std::vector<double> deviations;
    std::vector<std::size_t> judged;
    for (const auto& [calls, members] : peers()) {
      std::vector<double> times;
      for (const std::size_t member : members) times.push_back(verdict().ranks[member].compute);
      const double usual = median_of(times);
      for (const std::size_t member : members) {
        if (usual > 0)
          verdict().ranks[member].compute_over_peers = verdict().ranks[member].compute / usual;
        constexpr std::size_t fewest = 3;  // of two, nobody can tell which is the slow one
        if (members.size() < fewest || !(verdict().ranks[member].compute > 0)) continue;
        judged.push_back(member);
        deviations.push_back(std::log(verdict().ranks[member].compute_over_peers));
      }
    }
    const OutlierTest test(deviations);
    verdict().power.num_judged = judged.size();
    verdict().power.least_named = std::expm1(test.least_outlier());
    for (std::size_t i = 0; i < judged.size(); ++i) {
      RankPace& pace = verdict().ranks[judged[i]];
      pace.is_slow = test.is_outlier(deviations[i]) && cost_of(pace) > 0;
    }
    name_slow_ranks();
    if (!verdict().power.can_judge()) find_suspect();
  }

  /// Where chance explains whatever a rank does, or nobody does the same work: whom the others wait for most.
  void find_suspect() {
    const auto latest =
        std::max_element(verdict().ranks.begin(), verdict().ranks.end(),
                         [](const RankPace& a, const RankPace& b) { return a.lag < b.lag; });
    if (latest == verdict().ranks.end() || !(latest->lag > 0)) return;
    verdict().power.suspect = latest->member;
    verdict().power.missing_peers = missing_peers_of(latest->member);
  }

  /// Ranks without a trace that are in process groups with this one: those of its smallest groups, until there are enough to judge by.
  std::vector<std::int64_t> missing_peers_of(std::size_t member) const {
    constexpr std::size_t enough = 7;
    std::set<std::vector<std::int64_t>> groups;
    for (const CollectiveCall& call : ranks()[member].calls)
      if (call.kind != CollectiveKind::message)
        if (auto group = ranks_in(ranks()[member].names.at(call.ranks)))
          groups.insert(std::move(*group));
    std::vector<std::vector<std::int64_t>> by_size(groups.begin(), groups.end());
    std::stable_sort(by_size.begin(), by_size.end(),
                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
    std::set<std::int64_t> missing;
    for (const auto& group : by_size)
      if (missing.size() < enough) missing.insert(group.begin(), group.end());
    for (const RankTrace& rank : ranks()) missing.erase(rank.rank);
    return {missing.begin(), missing.end()};
  }

  /// What others wait for this rank beyond what they wait for any.
  double cost_of(const RankPace& pace) const {
    std::vector<double> lags;
    for (const RankPace& each : verdict().ranks) lags.push_back(each.lag);
    return pace.lag - median_of(std::move(lags));
  }

  void name_slow_ranks() {
    std::map<std::int64_t, std::vector<std::size_t>> slow_of_node;
    for (const RankPace& pace : verdict().ranks)
      if (pace.is_slow) slow_of_node[judged_.node_of(pace.member)].push_back(pace.member);
    for (const auto& slow : slow_of_node) {
      const std::int64_t node = slow.first;
      const std::vector<std::size_t>& members = slow.second;
      const auto on_node =
          std::count_if(verdict().ranks.begin(), verdict().ranks.end(),
                        [&](const RankPace& pace) { return judged_.node_of(pace.member) == node; });
      const bool whole_node =
          members.size() > 1 && static_cast<std::ptrdiff_t>(members.size()) == on_node;
      if (whole_node) add_slow_node(node, members);
      for (const std::size_t member : members)
        if (!whole_node) add_slow_rank(member);
    }
  }

  void add_slow_rank(std::size_t member) {
    const RankPace& pace = verdict().ranks[member];
    RankFinding finding;
    finding.kind = RankFinding::Kind::slow_rank;
    finding.places = {ranks()[member].rank};
    finding.ratio = pace.compute_over_peers;
    finding.cost = cost_of(pace);
    finding.text = "rank " + std::to_string(ranks()[member].rank) + " computes " +
                   percent_text(finding.ratio - 1) + " slower than its peers and costs " +
                   to_text(Seconds{finding.cost}) + " a step";
    verdict().findings.push_back(std::move(finding));
  }

  void add_slow_node(std::int64_t node, const std::vector<std::size_t>& members) {
    RankFinding finding;
    finding.kind = RankFinding::Kind::slow_node;
    finding.places = {node};
    std::vector<double> ratios;
    for (const std::size_t member : members) {
      ratios.push_back(verdict().ranks[member].compute_over_peers);
      // The GPUs of a node are late at once: what waits for them waits once.
      finding.cost = std::max(finding.cost, cost_of(verdict().ranks[member]));
    }
    finding.ratio = median_of(std::move(ratios));
    finding.text = "all GPUs of node " + std::to_string(node) + " compute " +
                   percent_text(finding.ratio - 1) + " slower than their peers and cost " +
                   to_text(Seconds{finding.cost}) + " a step";
    verdict().findings.push_back(std::move(finding));
  }

  JudgedRanks judged_;
};

}  // namespace

void detail::judge_paces(const JudgedRanks& judged) { PaceJudge(judged).judge(); }

}  // namespace windtunnel
