#pragma once

#include "search/rank.hpp"

namespace windtunnel {

/// Where the search or the file's own plan asks for it: searches a placement for each simulated plan of the table (search_placement, with
/// the scenario's seed), takes those that simulate faster, and orders the table anew. The bound and the proof hold for ranks on the GPUs in order: how fast a plan could be on any
/// placement nobody knows.
void place_ranked_plans(const Scenario& base, RankResult& result);

}  // namespace windtunnel
