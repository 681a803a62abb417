#include "calibrate/constant_fitter.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace windtunnel {
namespace {

constexpr double hardly_narrower = 0.8;      ///< posterior over prior width: the rows say little
constexpr double differs_in_widths = 2;      ///< nearer to the given value, it is one of 95 %
constexpr double clearly_worse = 0.02;       ///< of ln(time): the spread of regular rows
constexpr double most_rows_worse = 0.2;      ///< of all: outliers, which every set has
constexpr double at_bound_logarithm = 1e-3;  ///< of ln(constant): nearer to a bound is at it

bool is_at_bound(double value, const FitBounds& bounds) {
  return std::log(value / bounds.lower) < at_bound_logarithm ||
         std::log(bounds.upper / value) < at_bound_logarithm;
}

}  // namespace

ConstantFitter::ConstantFitter(const std::vector<CalibrationPoint>& points,
                               const CalibrationPlan& plan, PointPredictor& predictor)
    : points_(&points), plan_(&plan), predictor_(&predictor) {
  for (std::size_t j = 0; j < plan.constants.size(); ++j)
    ranges_.push_back(range_of(plan.constants[j], points.front().given[j].number));
}

ConstantFit ConstantFitter::fit(const Indices& rows, const std::vector<double>& start) {
  ConstantFit fitted;
  fitted.kept.resize(ranges_.size());
  const std::vector<double> first = start.empty() ? starts() : start;
  fitted.fit = fit_free(rows, first, fitted.kept, noise_of(rows));
  if (plan_->prior == PriorKind::none) return fitted;
  fitted.prior_widths = spreads(rows);
  fitted.posterior_widths = fitted.fit.widths;
  while (keep_one_more(fitted)) {
    fitted.fit = fit_free(rows, first, fitted.kept, noise_of(rows));
    for (std::size_t j = 0; j < ranges_.size(); ++j)
      if (!fitted.kept[j]) fitted.posterior_widths[j] = fitted.fit.widths[j];
  }
  if (makes_too_many_worse(rows, fitted.fit.values)) {
    for (auto& kept : fitted.kept)
      if (!kept) kept = Identification::contradicted;
    fitted.fit.values = starts();
  }
  return fitted;
}

std::vector<ScoredRow> ConstantFitter::compare(const Indices& rows,
                                               const std::vector<double>& values) {
  const std::vector<Seconds> predicted = predictor_->predict(values, rows);
  std::vector<ScoredRow> comparisons;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const CalibrationPoint& point = (*points_)[rows[i]];
    comparisons.push_back({point.id, point.size, point.measured, predicted[i], Flops{}});
  }
  return comparisons;
}

/// A constant that is kept has bounds that meet at its start.
RobustFit ConstantFitter::fit_free(const Indices& rows, const std::vector<double>& start,
                                   const Kept& kept, double noise) {
  FitProblem problem;
  for (std::size_t j = 0; j < ranges_.size(); ++j) {
    const FitBounds bounds =
        kept[j] ? FitBounds{ranges_[j].start, ranges_[j].start} : ranges_[j].bounds;
    problem.lower.push_back(bounds.lower);
    problem.upper.push_back(bounds.upper);
    problem.start.push_back(std::clamp(start[j], bounds.lower, bounds.upper));
  }
  problem.weights = weights(rows);
  problem.residuals = [&](const std::vector<double>& values) { return residuals(values, rows); };
  if (plan_->prior == PriorKind::shipped) problem.prior = FitPrior{starts(), spreads(rows), noise};
  return robust_fit(problem);
}

std::vector<double> ConstantFitter::starts() const {
  std::vector<double> values;
  for (const FitRange& range : ranges_) values.push_back(range.start);
  return values;
}

std::vector<double> ConstantFitter::residuals(const std::vector<double>& values,
                                              const Indices& rows) {
  std::vector<double> logarithms;
  for (const ScoredRow& row : compare(rows, values))
    logarithms.push_back(std::log(row.predicted / row.measured));
  return logarithms;
}

/// Equal for each set, with a mean of 1 over the rows.
std::vector<double> ConstantFitter::weights(const Indices& rows) const {
  std::map<std::string, double> rows_of_set;
  for (const std::size_t row : rows) ++rows_of_set[(*points_)[row].set];
  const double share = static_cast<double>(rows.size()) / static_cast<double>(rows_of_set.size());
  std::vector<double> weights;
  for (const std::size_t row : rows) weights.push_back(share / rows_of_set[(*points_)[row].set]);
  return weights;
}

/// Of the widest prior that a row has: one unmeasured stack among them, and little is known.
std::vector<double> ConstantFitter::spreads(const Indices& rows) const {
  std::vector<double> spreads(ranges_.size(), 0);
  for (std::size_t j = 0; j < spreads.size(); ++j)
    for (const std::size_t row : rows)
      spreads[j] = std::max(spreads[j], prior_spread(plan_->constants[j], (*points_)[row].stack));
  return spreads;
}

double ConstantFitter::noise_of(const Indices& rows) const {
  const bool measured = std::ranges::all_of(
      rows, [&](std::size_t row) { return (*points_)[row].stack == StackKnowledge::known; });
  return measured ? row_noise : unmeasured_row_noise;
}

bool ConstantFitter::keep_one_more(ConstantFit& fitted) const {
  std::optional<std::size_t> least_known, nearest;
  double largest_share = hardly_narrower, smallest_move = differs_in_widths;
  for (std::size_t j = 0; j < ranges_.size(); ++j) {
    if (fitted.kept[j]) continue;
    const double width = fitted.fit.widths[j];
    const double move = std::abs(std::log(fitted.fit.values[j] / ranges_[j].start)) / width;
    if (const double share = width / fitted.prior_widths[j]; share > largest_share) {
      least_known = j;
      largest_share = share;
    }
    if (move < smallest_move && !is_at_bound(fitted.fit.values[j], ranges_[j].bounds)) {
      nearest = j;
      smallest_move = move;
    }
  }
  if (least_known)
    fitted.kept[*least_known] = Identification::prior_only;
  else if (nearest)
    fitted.kept[*nearest] = Identification::agrees;
  return least_known || nearest;
}

bool ConstantFitter::makes_too_many_worse(const Indices& rows, const std::vector<double>& values) {
  const std::vector<double> before = residuals(starts(), rows);
  const std::vector<double> after = residuals(values, rows);
  std::size_t worse = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (std::abs(after[i]) > std::abs(before[i]) + clearly_worse) ++worse;
  return static_cast<double>(worse) > most_rows_worse * static_cast<double>(rows.size());
}

}  // namespace windtunnel
