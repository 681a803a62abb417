#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evidence/pair_errors.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// A measured time with the predicted one.
struct ScoredRow {
  std::string id, group;
  Seconds measured{}, predicted{};
  /// FLOPs of one GPU scaled up by the ideal pipeline bubble: what the naive model divides by its
  /// one constant.
  Flops ideal_work{};
  /// The 90 % interval of the prediction, where it has one.
  std::optional<std::pair<Seconds, Seconds>> interval{};
  std::optional<JudgedRun> judged{};  ///< the prediction, of an iteration

  /// (predicted - measured) / measured
  double error() const { return (predicted - measured) / measured; }
};

/// Errors of predictions against measurements. Errors are relative, as fractions; all but `bias`
/// without sign.
struct Score {
  std::size_t scored = 0;
  double mape = 0;  ///< mean absolute (percentage) error
  double median_ape = 0;
  double p90_ape = 0;  ///< 90th percentile, interpolated between neighbours
  double worst_ape = 0;
  double bias = 0;  ///< mean error with its sign: below zero, predictions are too fast
};

/// The score of at least one relative error, as fractions with their sign.
Score score_errors(const std::vector<double>& errors);
/// The score of at least one comparison.
Score score(const std::vector<ScoredRow>& comparisons);

/// The score without the `count` comparisons of largest error. They are picked after looking, so
/// this is no score to be proud of: it tells how much of an error a few rows make.
Score score_without_largest(std::vector<ScoredRow> comparisons, std::size_t count);

/// Number of rows that score_without_largest() leaves out: 5 % of them, rounded.
std::size_t num_largest(std::size_t scored);

/// MAPE of the simplest model that respects pipelines, fitted on the very same rows: the bar that
/// any model must clear.
///   t = F / (n e) * (1 + (p - 1) / (m v)),   F FLOPs of an iteration with recomputation, n GPUs, e
///   the one constant
/// e minimises this very MAPE: 1/e is the median of t_i/x_i with weights x_i/t_i, where x_i is the
/// ideal work.
double naive_mape(const std::vector<ScoredRow>& comparisons);

/// Share of the measured times that lie in the predicted interval, of those rows that have one.
std::optional<double> interval_coverage(const std::vector<ScoredRow>& comparisons);

/// Ideal work of one GPU: F / n * (1 + (p - 1) / (m v)), p stages, m microbatches, v chunks a
/// device.
Flops ideal_work(Flops iteration, int gpus, int stages, int microbatches, int chunks);

/// Agreement on the order of the plans in a group: Kendall's tau-b of predicted and measured
/// times, from -1 to 1. Empty for a group in which all are equal, or of one. Kendall, Biometrika
/// 33(3), 239-251, 1945.
std::optional<double> kendall_tau(const std::vector<ScoredRow>& comparisons);

/// The correlation of predicted and measured ranks, from -1 to 1; equal times share the mean of their ranks. Empty as Kendall's
/// tau is. Spearman, The American Journal of Psychology 15(1), 72-101, 1904.
std::optional<double> spearman_rho(const std::vector<ScoredRow>& comparisons);

/// Cost of choosing by prediction: measured time of the plan predicted fastest over that of the
/// plan measured fastest, minus 1.
double top1_regret(const std::vector<ScoredRow>& comparisons);

/// The comparisons that belong together.
struct ComparisonGroup {
  std::string name;
  std::vector<ScoredRow> comparisons;
};

/// The comparisons by group, groups in the order in which they first appear.
std::vector<ComparisonGroup> by_group(const std::vector<ScoredRow>& comparisons);

}  // namespace windtunnel
