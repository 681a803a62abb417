#pragma once

#include <string>

#include "search/rank.hpp"

namespace windtunnel {

/// The result as one JSON document, windtunnel/rank-v1, with a line end.
std::string rank_json(const Scenario& base, const RankResult& result);

}  // namespace windtunnel
