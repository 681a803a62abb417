#pragma once

#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "report/chart.hpp"
#include "validate/validate.hpp"

namespace windtunnel {

enum class Legend { shown, hidden };

/// All sets on one screen: a line each, iteration times first, then collectives, and what the columns mean.
///
///   iteration times, errors in %   rows  mean  worst  bias   bar  inside  fitted
///   amp-t4                        42/47   5.8   28.7  +2.2  28.8      90       0
///   korthikanti-table5                8   2.6    6.5  +0.0  11.3     100       1
std::string validation_summary(const std::vector<ValidatedSet>& sets, Legend legend);

/// One set for people:
///
///   vtrain-a100-multi-node: 54 of 54 points scored
///   Bang et al., vTrain, MICRO 2024, …
///
///   point                       measured   predicted     error
///   3.6b-tp1-dp64-pp1-mb8        3.567 s     3.601 s    +1.0 %
///   39.1b-tp2-dp32-pp8-mb2       21.89 s     14.43 s   -34.1 %  *
///
///   mean absolute error     5.3 %   median 2.9 %, 90th percentile 11.8 %, worst 36.7 %, bias -1.8
///   % bar to clear           16.4 %   one constant efficiency x ideal bubble, fitted on these rows
///   without the 3 largest   3.6 %   picked after looking: not the score; it tells what a few rows
///   weigh
///
///   group   points   mean   bias   …
std::string validation_text(const ValidatedSet& set);

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
/// Keys without content are left out.
JsonValue validation_value(const std::vector<ValidatedSet>& sets);
std::string validation_json(const std::vector<ValidatedSet>& sets);

/// The page of `validate --report`: how far off, predicted against measured with the line on which predictions are right, the
/// worst rows by name, the score of every set, and what could not be predicted. The document of `validate --json` stands in
/// it under the id "report".
std::string validation_page(const std::vector<ValidatedSet>& sets);

/// Predicted against measured times of the sets: both axes logarithmic, dotted the line on which predictions are right and those that are 10 % off,
/// one colour a kind of GPU (of collectives and kernels: a set), hollow where no
/// constant was fitted on the set, and keys with their mean absolute errors. Iterations only; collectives, which take microseconds, where there is nothing else.
struct ScatterPlot {
  Chart chart;
  std::vector<ChartKey> keys;
};
ScatterPlot scatter_plot(const std::vector<ValidatedSet>& sets);

/// The plot as a picture of its own, which follows the reader's light or dark scheme. `title` is "Predicted and measured iteration times" or the like
/// where none is given.
std::string scatter_svg(const std::vector<ValidatedSet>& sets, const std::string& title = "");

}  // namespace windtunnel
