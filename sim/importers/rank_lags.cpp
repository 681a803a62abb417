#include "importers/rank_lags.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "importers/rate_matrix.hpp"

namespace windtunnel {
namespace {

/// What a rank has done up to a moment.
struct RankState {
  std::int64_t at = 0;        ///< the moment, on the common clock
  std::int64_t in_calls = 0;  ///< waiting for others and transferring
  std::int64_t charged = 0;   ///< with lags
};

class LagCharger {
 public:
  LagCharger(const std::vector<RankTrace>& ranks, const MatchedRanks& matched) : matched_(matched) {
    for (std::size_t member = 0; member < ranks.size(); ++member)
      now_.push_back({ranks[member].begin - matched.clock_offsets[member], 0, 0});
    begins_ = now_;
  }

  std::vector<std::int64_t> charged() {
    std::vector<std::pair<std::int64_t, const MatchedCall*>> in_order;
    for (const MatchedCall& call : matched_.calls) in_order.emplace_back(call.last().begin, &call);
    std::stable_sort(in_order.begin(), in_order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [begin, call] : in_order) take(*call);
    std::vector<std::int64_t> charged;
    for (const RankState& state : now_) charged.push_back(state.charged);
    return charged;
  }

 private:
  void take(const MatchedCall& call) {
    const MatchedCall::Part& last = call.last();
    if (call.kind != CollectiveKind::message) now_[last.member].charged += own_lag(call, last);
    for (const auto& part : call.parts) {
      now_[part.member].in_calls += part.end - part.begin;
      now_[part.member].at = part.end;
      together_[{part.member, call.group}] = now_[part.member];
    }
  }

  /// The state of a rank when it was last together with this group.
  const RankState& since(std::size_t member, std::size_t group) const {
    const auto found = together_.find({member, group});
    return found == together_.end() ? begins_[member] : found->second;
  }

  double work(const MatchedCall& call, const MatchedCall::Part& part) const {
    const RankState& before = since(part.member, call.group);
    return static_cast<double>(part.begin - before.at -
                               (now_[part.member].in_calls - before.in_calls));
  }

  std::int64_t own_lag(const MatchedCall& call, const MatchedCall::Part& last) const {
    std::vector<double> others;
    for (const auto& part : call.parts)
      if (&part != &last) others.push_back(work(call, part));
    const std::int64_t excess = std::llround(work(call, last) - median_of(std::move(others)));
    const std::int64_t charged = now_[last.member].charged - since(last.member, call.group).charged;
    return std::max<std::int64_t>(0, std::min(call.lag(), excess) - charged);
  }

  const MatchedRanks& matched_;
  std::vector<RankState> now_, begins_;
  std::map<std::pair<std::size_t, std::size_t>, RankState> together_;  ///< by rank and group
};

}  // namespace

std::vector<std::int64_t> own_lags(const std::vector<RankTrace>& ranks,
                                   const MatchedRanks& matched) {
  return LagCharger(ranks, matched).charged();
}

}  // namespace windtunnel
