#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "report/ordering.hpp"
#include "report/report.hpp"
#include "scenario/scenario.hpp"
#include "timeline/breakdown.hpp"

namespace windtunnel {

inline constexpr double interval_share = 0.9;  ///< of new runs, and pairs, inside an interval
/// Widening of intervals for clusters or jobs outside the measured range, and if measurements are too few; assumed.
inline constexpr double interval_widening = 1.5;

/// Typical size of an error, which grows with the share of time that causes it. The interval of a new run is as many
/// allowances wide as measured ones needed: split conformal with a scale of its own for each run (Lei et al., JASA 113(523), 2018, section 5.2).
struct Allowance {
  double base = 1, growth = 0;

  double of(double share) const { return base + growth * share; }
};

/// A measured error and that share.
struct SizedError {
  std::string set;
  double error = 0;  ///< without its sign
  double share = 0;
};

/// A resistant line (Tukey, Exploratory Data Analysis, 1977, chapter 5) through the medians of the errors with the smallest and the largest
/// shares, a third each; every set counts alike. It falls nowhere. There must be an error.
Allowance fitted_allowance(const std::vector<SizedError>& errors);

/// Share of a run's time outside the kernels of its passes: communication, bubbles, optimizer, host. It is predicted less well than
/// kernels, which were measured one by one.
double share_outside_kernels(const Breakdown& breakdown);

/// Features of a run by which its order against another is judged.
struct JudgedRun {
  std::string software, gpu, model;  ///< profile, family of GPUs ("a100"), model with its size
  Seconds time{};                    ///< of an iteration, predicted
  Breakdown breakdown;               ///< of `time`
  std::optional<std::pair<Seconds, Seconds>> interval = {};  ///< 90 %, of `time`

  /// The same for `work` times the work.
  JudgedRun scaled(double work) const;
};
/// Features of a scenario that was simulated.
JudgedRun judged_run(const Scenario& scenario, Seconds time, const Breakdown& breakdown,
                     std::optional<std::pair<Seconds, Seconds>> interval);
/// Features of a document windtunnel/report-v1.
JudgedRun judged_run(const JsonValue& report);

/// Half the difference of what two breakdowns give to each of their lines, as shares of their totals: 0 if they are equal,
/// 1 where the runs have nothing in common (the total variation distance).
double share_moved(const Breakdown& a, const Breakdown& b);

/// A measured run next to its prediction.
struct MeasuredRun {
  std::string set;
  JudgedRun predicted;
  Seconds measured{};
};

/// Errors of predicted differences, of stacks with a profile. A pair is two measured runs of one set that share stack, GPUs and model; its
/// error is |ln(measured / predicted) of one - of the other|, in which is cancelled what both share.
struct PairErrors {
  Allowance
      allowance;  ///< by share_moved(): between runs with equal breakdowns most of the error cancels
  /// By set, the errors of its pairs over their allowances; sorted. At most 20, which stand for as many parts of a larger number.
  std::map<std::string, std::vector<double>> sets;

  double bound = 0;  ///< allowances that 10 of 100 pairs of a new set are off by more than
  double order_bound =
      0;  ///< the same of 20 of 100: half of them to the side that turns an order round

  /// The part of the pairs of a new set whose error is at least so many allowances, every set counting alike, and the new one as one
  /// that is all beyond: (sum + 1) / (n + 1), so it is never 0.
  double share_beyond(double score) const;
  /// Sets both bounds, after sets were added or taken out. Sets stand in place of rows, as in UnseenErrors::bounds. Where the sets are too few for a bound, it is
  /// the largest score, times 1.5.
  void find_bounds();
};

/// Errors of all pairs of the runs.
PairErrors pair_errors(const std::vector<MeasuredRun>& runs);

/// Least gain, in ln of the time, for which an order is known (Ordering::is_known()); none if the runs do not share stack,
/// GPUs and model, or nothing is known of errors.
std::optional<double> least_known_gain(const JudgedRun& a, const JudgedRun& b,
                                       const PairErrors& errors);

/// Accuracy of statements about the order of two measured runs, over pairs of one set that share stack, GPUs and model.
struct OrderScore {
  std::size_t pairs = 0;    ///< all of them
  std::size_t covered = 0;  ///< whose measured ratio lies in the interval
  // Counts over those whose measured times differ by more than 3 %:
  std::size_t apart = 0;
  double right = 0;  ///< the one predicted to be faster is; half of a pair that has one prediction
  std::size_t said = 0;  ///< the verdict is that one is faster
  std::size_t said_right = 0;
};
/// Score of the runs of one set, with errors that exclude its own. The allowance and the predictions are those that ship, so the set may
/// have had a part in these.
OrderScore score_orders(const std::vector<MeasuredRun>& runs, const PairErrors& errors);

/// `second` against `first`. Runs that share stack, GPUs and model are judged by the errors of such pairs; others by the intervals of both,
/// as if their errors were independent and normal with these as their 5th and 95th percentiles. None where neither is known.
std::optional<Ordering> order(const JudgedRun& first, const JudgedRun& second,
                              const PairErrors& errors);

}  // namespace windtunnel
