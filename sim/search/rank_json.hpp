#pragma once

#include <string>

#include "search/rank.hpp"

namespace windtunnel {

/// The result as one JSON document, windtunnel/rank-v1, with a line end.
std::string rank_json(const Scenario& base, const RankResult& result);

/// The best plan with its launch arguments and the GPU of each rank, "node:gpu": windtunnel/launch-v1.
std::string launch_json(const Scenario& base, const RankedPlan& plan, const Plan& laid_out);

}  // namespace windtunnel
