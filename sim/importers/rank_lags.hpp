#pragma once

#include <cstdint>
#include <vector>

#include "importers/rank_matching.hpp"

namespace windtunnel {

/// How long others waited for each rank by its own doing, ns over the whole trace.
///
/// The last to come to a call lags behind the last but one. Its own doing is what it has been at work longer than the others of the
/// group since they last were together, time in other calls not counted; without what it was charged for in other calls since then.
/// So ranks that come late because they waited for a slow one elsewhere are not charged, and no lag is charged twice.
/// Messages are calls too, but nobody is charged for them: a receiver waits in any pipeline.
std::vector<std::int64_t> own_lags(const std::vector<RankTrace>& ranks,
                                   const MatchedRanks& matched);

}  // namespace windtunnel
