#pragma once

#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "importers/rank_verdict.hpp"

namespace windtunnel {

/// The ranks of a job compared, for people:
///
///   calls matched across ranks: 7,168 in 24 groups
///
///   late                  compute   to peers  others wait  comes last
///     rank 11              112 ms   +25.1 %      22.4 ms      100.0 %
///     …
///   process groups                    calls       size   bus bandwidth      slowest
///     TENSOR_MODEL_PARALLEL_GROUP     …
///
///   Verdict
///     rank 11 computes 25.1 % slower than its peers and costs 22.4 ms a step
std::string text_of(const RankVerdict& verdict, const std::vector<RankTrace>& ranks);

/// The same for --json: `matched_calls`, `unmatched_calls`, `ranks`, `groups`, `verdict`.
JsonValue json_of(const RankVerdict& verdict, const std::vector<RankTrace>& ranks);

}  // namespace windtunnel
