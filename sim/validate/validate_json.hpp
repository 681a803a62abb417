#pragma once

#include <string>
#include <vector>

#include "validate/validate.hpp"

namespace windtunnel {

/// The document of `validate --json`, with a last line end:
///   {"schema": "windtunnel/validation-v1", "sets": [{"set": …, "points": N, "scored": N,
///   "skipped": […], "mape": …,
///    "naive_mape": …, "groups": {…}, "kendall_tau": {…}, "top1_regret": {…}}], "points": [{"set",
///    "id", "group", "measured_s", "predicted_s", "error"}]}
/// A set of which nothing could be scored has no scores.
std::string validation_json(const std::vector<ValidatedSet>& sets);

}  // namespace windtunnel
