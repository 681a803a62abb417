#include "importers/rank_verdict.hpp"

#include <algorithm>

#include "importers/rank_judges.hpp"

namespace windtunnel {
namespace {

/// Ranks are laid over nodes in order, each with as many as the largest device number says, or it is unknown.
std::int64_t gpus_per_node(const std::vector<RankTrace>& ranks) {
  std::int64_t most = 0;
  for (const RankTrace& rank : ranks) most = std::max(most, rank.device + 1);
  const bool in_order = std::all_of(ranks.begin(), ranks.end(), [&](const RankTrace& rank) {
    return rank.rank % most == rank.device;
  });
  return most > 1 && in_order ? most : 0;
}

}  // namespace

const char* name_of(RankFinding::Kind kind) {
  switch (kind) {
    case RankFinding::Kind::slow_rank:
      return "slow-rank";
    case RankFinding::Kind::slow_node:
      return "slow-node";
    case RankFinding::Kind::slow_link:
      return "slow-link";
    case RankFinding::Kind::slow_network_of_node:
      return "slow-network-of-node";
    case RankFinding::Kind::slow_group:
      return "slow-group";
  }
  return "";
}

double bus_factor(CollectiveKind kind, std::size_t num_ranks) {
  const auto n = static_cast<double>(num_ranks);
  if (kind == CollectiveKind::all_reduce) return 2 * (n - 1) / n;
  if (kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
      kind == CollectiveKind::all_to_all)
    return (n - 1) / n;
  return 1;
}

RankVerdict judge_ranks(const std::vector<RankTrace>& ranks) {
  RankVerdict verdict;
  verdict.matched = match_ranks(ranks);
  verdict.gpus_per_node = gpus_per_node(ranks);
  const detail::JudgedRanks judged{&ranks, &verdict};
  detail::judge_paces(judged);
  detail::judge_rates(judged);
  return verdict;
}

}  // namespace windtunnel
