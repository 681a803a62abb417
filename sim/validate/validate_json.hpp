#pragma once

#include <string>
#include <vector>

#include "validate/validate.hpp"

namespace windtunnel {

/// The document of `validate --json`, with a last line end:
///   {"schema": "windtunnel/validation-v1",
///    "iterations": {"scored": N, "mape": …, …} over the rows of all sets of iterations,
///    "sets": [{"set": …, "points": N, "scored": N, "skipped": [{"id", "why"}],
///      "fitted_on_this_set": [numbers of the points' own files that were],
///      "overrides": ["/pointer=value" of --set, over every point], "mape": …,
///      "naive_mape": …, "groups": {…}, "kendall_tau": {…}, "spearman_rho": {…}, "top1_regret": {…},
///      "interval_coverage": …, "memory_mape": …, "memory_allocated_mape": …,
///      "out_of_memory": {"caught", "missed", "refused_that_ran", "ran"},
///      "timers_mape": {"forward-compute": …}}],
///    "points": [{"set", "id", "group", "measured_s", "predicted_s", "error", "interval_s"}],
///    "memory": [{"set", "id", "kind", "ranks", "measured_bytes", "predicted_bytes", "error"}],
///    "timers": [{"set", "id", "timer", "measured_s", "predicted_s", "error"}]}
/// What a set has nothing of is absent.
std::string validation_json(const std::vector<ValidatedSet>& sets);

}  // namespace windtunnel
