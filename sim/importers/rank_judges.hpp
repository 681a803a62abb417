#pragma once

#include <cstdint>
#include <vector>

#include "importers/rank_verdict.hpp"

namespace windtunnel::detail {

inline constexpr double nanosecond = 1e-9;

/// The ranks of a run and what has been found about them so far.
struct JudgedRanks {
  const std::vector<RankTrace>* ranks;
  RankVerdict* verdict;

  std::int64_t node_of(std::size_t member) const {
    const std::int64_t rank = (*ranks)[member].rank;
    return verdict->gpus_per_node > 0 ? rank / verdict->gpus_per_node : rank;
  }
  double steps_of(std::size_t member) const {
    return static_cast<double>((*ranks)[member].num_steps);
  }
};

/// Fills RankVerdict::ranks, and names ranks and nodes that compute slower than their peers and are waited for.
void judge_paces(const JudgedRanks& judged);

/// Fills RankVerdict::groups, and names links, network cards or groups that move less than others of their sort.
void judge_rates(const JudgedRanks& judged);

}  // namespace windtunnel::detail
