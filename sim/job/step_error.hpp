#pragma once

#include <vector>

namespace windtunnel {

/// A figure over many runs.
struct Spread {
  double median = 0, low = 0, high = 0;  ///< 5th and 95th percentile
};
/// The percentiles of `values`, between neighbours on a straight line.
Spread spread_of(std::vector<double> values);

/// A figure of a job, in which two independent errors meet: runs differ (failures, noise), and the predicted step may be off. The
/// median is that of the draws at the predicted step; `low` and `high` hold 90 % of runs over both errors.
///
///   draws at the predicted step   29.4 … 29.5 … 29.6 days     `of_run`
///   the same draws at both ends of the step's interval: medians of 25.9 and 37.8 days     `of_step`
///   both   25.9 … 29.5 … 37.8 days
struct JobFigure : Spread {
  Spread of_run;
  Spread of_step;
};

/// The figure whose draws at the predicted step are `draws`, and whose median is `low` and `high` times as large at the ends of the
/// step's 90 % interval (low <= 1 <= high). The figure of a run is X R: X is one of the draws, each as likely, and R, independent of
/// it, is what the step's error makes of it. ln R has median 0, and each half is half of a normal distribution whose 5th or 95th
/// percentile is ln(low) or ln(high): a two-piece normal distribution (K. F. Wallis, Statistical Science 29(1), 106-112, 2014) with
/// as much weight on either side. Residuals say where the interval ends, not how they lie inside: that shape is assumed. The
/// percentiles of X R are exact under it: they solve
///   mean over the draws x of P(R <= t / x) = 0.05 or 0.95
JobFigure figure_of(const std::vector<double>& draws, double low, double high);

}  // namespace windtunnel
