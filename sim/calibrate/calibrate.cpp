#include "calibrate/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <random>
#include <utility>

#include "core/contracts.hpp"
#include "core/mapped.hpp"
#include "core/text_list.hpp"
#include "report/number_text.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

using Indices = std::vector<std::size_t>;

constexpr std::size_t num_folds = 5;
constexpr double weak_half_width = 0.10;    ///< of the value, from refits
constexpr double strong_correlation = 0.9;  ///< in size
constexpr double least_sensitivity = 2e-3;  ///< 1 % of the constant moves times by 0.002 %
constexpr double one_row_share = 0.5;       ///< of what all rows say
constexpr double at_bound_share = 1e-3;     ///< nearer to a bound is at it
/// Of ln(constant), to either side, for the weight of a constant. Times jump where another order of messages begins: differences over
/// a tenth of it, as a fit takes them, can be several times too large.
constexpr double weight_step = 0.01;

Indices all_rows(std::size_t count) {
  Indices rows(count);
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  return rows;
}

/// The rows of each model size, sizes in the order in which they first appear.
std::vector<HeldOut> size_groups(const std::vector<CalibrationPoint>& points) {
  std::vector<HeldOut> groups;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto known = std::ranges::find(groups, points[i].size, &HeldOut::name);
    HeldOut& group = known != groups.end() ? *known : groups.emplace_back();
    group.name = points[i].size;
    group.points.push_back(i);
  }
  return groups;
}

/// Random groups of equal size; the same for the same seed on every machine.
std::vector<HeldOut> fold_groups(std::size_t count, std::uint64_t seed) {
  Indices order = all_rows(count);
  std::mt19937_64 random(seed);
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  std::vector<HeldOut> groups(std::min(num_folds, count));
  for (std::size_t i = 0; i < count; ++i) groups[i % groups.size()].points.push_back(order[i]);
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].name = "fold " + std::to_string(i + 1);
  return groups;
}

/// Refits without each group and predicts it; nothing when there is only one.
std::vector<HeldOut> hold_out(std::vector<HeldOut> groups, const std::vector<double>& fitted,
                              const std::vector<CalibrationPoint>& points, ConstantFitter& fitter) {
  if (groups.size() < 2) return {};
  for (HeldOut& group : groups) {
    Indices rest;
    for (const std::size_t row : all_rows(points.size()))
      if (std::ranges::find(group.points, row) == group.points.end()) rest.push_back(row);
    group.values = fitted.empty() ? fitted : fitter.fit(rest, fitted).fit.values;
    group.comparisons = fitter.compare(group.points, group.values);
    const AnchoredResiduals anchors = anchors_of(points, rest, fitter.compare(rest, group.values));
    group.anchored = anchored(group.comparisons, points, group.points, anchors);
  }
  return groups;
}

double largest_share(const std::vector<double>& values) {
  double largest = 0, sum = 0;
  for (const double value : values) {
    largest = std::max(largest, value * value);
    sum += value * value;
  }
  return sum > 0 ? largest / sum : 0;
}

Identification identify(const FittedConstant& fitted) {
  const bool has_effect = fitted.sensitivity >= least_sensitivity;
  // A constant without effect keeps its start. One that lost its effect on the way to a bound, or was moved there before the fit
  // because the file's value lies outside, is at the bound all the same.
  const bool has_moved =
      !(std::abs(fitted.value - fitted.given.number) <= at_bound_share * fitted.given.number);
  if (fitted.side() != BoundSide::inside && (has_effect || has_moved))
    return Identification::at_bound;
  if (!has_effect) return Identification::no_effect;
  if (std::abs(fitted.correlation) > strong_correlation) return Identification::traded;
  if (fitted.largest_share > one_row_share) return Identification::one_row;
  const double half_width = (fitted.highest - fitted.lowest) / 2 / fitted.value;
  return half_width > weak_half_width ? Identification::weak : Identification::good;
}

/// Constant j by the fit and its refits.
FittedConstant describe(const std::vector<FitConstant>& constants, std::size_t j,
                        const ConstantFit& whole, const std::vector<double>& sensitivities,
                        const std::vector<HeldOut>& refits) {
  const RobustFit& fit = whole.fit;
  FittedConstant fitted;
  if (!whole.prior_widths.empty()) {
    fitted.prior_width = whole.prior_widths[j];
    fitted.posterior_width = whole.posterior_widths[j];
    fitted.favoured = whole.favoured[j];
  }
  fitted.constant = constants[j];
  fitted.value = fitted.lowest = fitted.highest = fit.values[j];
  for (const HeldOut& refit : refits) {
    fitted.lowest = std::min(fitted.lowest, refit.values[j]);
    fitted.highest = std::max(fitted.highest, refit.values[j]);
  }
  for (const double value : sensitivities) fitted.sensitivity += std::abs(value);
  fitted.sensitivity /= static_cast<double>(sensitivities.size());
  fitted.largest_share = largest_share(sensitivities);
  for (std::size_t k = 0; k < constants.size(); ++k) {
    if (k == j || std::abs(fit.correlations[j][k]) <= std::abs(fitted.correlation)) continue;
    fitted.correlation = fit.correlations[j][k];
    fitted.partner = constants[k].name;
  }
  return fitted;
}

constexpr double hardly_narrower = 0.8;      ///< posterior over prior width: the rows say little
constexpr double differs_in_widths = 2;      ///< nearer to the given value, it is one of 95 %
constexpr double clearly_worse = 0.02;       ///< of ln(time): the spread of regular rows
constexpr double most_rows_worse = 0.2;      ///< of all: outliers, which every set has
constexpr double at_bound_logarithm = 1e-3;  ///< of ln(constant): nearer to a bound is at it

}  // namespace

PointPredictor::PointPredictor(const std::vector<CalibrationPoint>& points,
                               const std::vector<FitConstant>& constants, Predict predict,
                               OnProgress on_progress)
    : points_(&points),
      constants_(&constants),
      predict_(std::move(predict)),
      on_progress_(std::move(on_progress)) {}

std::vector<Seconds> PointPredictor::predict(const std::vector<double>& exact_values,
                                             const std::vector<std::size_t>& indices) {
  constexpr int digits = 9;  // values that agree so far differ by rounding of a logarithm
  const auto values = mapped(exact_values, [](double value) { return rounded_to(value, digits); });
  std::map<std::size_t, Seconds>& known = known_[values];
  std::vector<std::size_t> missing;
  for (const std::size_t index : indices)
    if (!known.contains(index)) missing.push_back(index);
  Tasks<Seconds> tasks{missing.size(), default_at_once(), [&](std::size_t i) {
                         const CalibrationPoint& point = (*points_)[missing[i]];
                         Overrides overrides;
                         for (std::size_t j = 0; j < values.size(); ++j)
                           overrides.emplace_back((*constants_)[j].pointer,
                                                  text_of({values[j], point.given[j].unit}));
                         return predict_(point, overrides);
                       }};
  if (on_progress_)
    tasks.on_done = [&](std::size_t done) { on_progress_(num_predictions_ + done); };
  const std::vector<TaskOutcome<Seconds>> outcomes = run_tasks(tasks);
  num_predictions_ += missing.size();
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (const auto* failure = std::get_if<ChildFailure>(&outcomes[i]))
      throw_failure(*failure, (*points_)[missing[i]].id);
    known[missing[i]] = std::get<Seconds>(outcomes[i]);
  }
  return mapped(indices, [&](std::size_t index) { return known.at(index); });
}

PointPredictor::Predict predict_by_simulation(const Library& library, Overrides overrides) {
  return [library, overrides = std::move(overrides)](const CalibrationPoint& point,
                                                     const Overrides& fitted) {
    ReadOptions options{.overrides = overrides};
    for (auto& each : on_all_places(fitted, point.alike))
      options.overrides.push_back(std::move(each));
    const Scenario scenario = read_scenario(point.scenario, point.folder, library, options);
    return simulate(scenario).report.iteration_time;
  };
}

BoundSide FittedConstant::side() const {
  if (value < range.bounds.lower * (1 + at_bound_share)) return BoundSide::lower;
  return value > range.bounds.upper * (1 - at_bound_share) ? BoundSide::upper : BoundSide::inside;
}

bool FittedConstant::is_kept() const {
  return identification == Identification::prior_only || identification == Identification::agrees ||
         identification == Identification::contradicted;
}

Calibration calibrate(const std::vector<CalibrationPoint>& points, const CalibrationPlan& plan,
                      PointPredictor& predictor) {
  WT_EXPECT(!points.empty());
  const Indices rows = all_rows(points.size());
  ConstantFitter fitter(points, plan, predictor);
  Calibration calibration;
  calibration.as_given = fitter.compare(rows, {});
  const ConstantFit fit = plan.constants.empty() ? ConstantFit{} : fitter.fit(rows);
  const std::vector<double>& values = fit.fit.values;
  calibration.in_sample = fitter.compare(rows, values);
  calibration.by_size = hold_out(size_groups(points), values, points, fitter);
  calibration.by_fold = hold_out(fold_groups(points.size(), plan.seed), values, points, fitter);
  const auto& refits = calibration.by_size.empty() ? calibration.by_fold : calibration.by_size;
  for (std::size_t j = 0; j < plan.constants.size(); ++j) {
    FittedConstant fitted =
        describe(plan.constants, j, fit, fitter.sensitivities(rows, values, j), refits);
    fitted.range = fitter.ranges()[j];
    fitted.given = points.front().given[j];
    fitted.identification = fit.kept[j].value_or(Identification::good);
    if (!fitted.is_kept()) fitted.identification = identify(fitted);
    calibration.constants.push_back(std::move(fitted));
  }
  return calibration;
}

std::vector<ScoredRow> all_of(const std::vector<HeldOut>& groups,
                              std::vector<ScoredRow> HeldOut::*rows) {
  std::vector<ScoredRow> all;
  for (const HeldOut& group : groups) std::ranges::copy(group.*rows, std::back_inserter(all));
  return all;
}

AnchoredResiduals anchors_of(const std::vector<CalibrationPoint>& points,
                             const std::vector<std::size_t>& rows,
                             const std::vector<ScoredRow>& comparisons) {
  std::vector<Anchor> anchors;
  for (std::size_t i = 0; i < rows.size(); ++i)
    anchors.push_back(
        {points[rows[i]].place, std::log(comparisons[i].measured / comparisons[i].predicted)});
  return AnchoredResiduals(std::move(anchors));
}

std::vector<ScoredRow> anchored(std::vector<ScoredRow> comparisons,
                                const std::vector<CalibrationPoint>& points,
                                const std::vector<std::size_t>& rows,
                                const AnchoredResiduals& anchors) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    comparisons[i].predicted =
        comparisons[i].predicted * std::exp(anchors.at(points[rows[i]].place).mean);
  return comparisons;
}

std::vector<ScoredRow> held_out_by_row(const Calibration& calibration) {
  std::vector<ScoredRow> by_row = calibration.as_given;
  if (calibration.constants.empty()) return by_row;
  for (const HeldOut& group :
       calibration.by_size.empty() ? calibration.by_fold : calibration.by_size)
    for (std::size_t i = 0; i < group.points.size(); ++i)
      by_row[group.points[i]] = group.comparisons[i];
  return by_row;
}

std::vector<EvidenceRegime> evidence_of(const std::vector<CalibrationPoint>& points,
                                        const Calibration& calibration) {
  std::vector<EvidenceRegime> regimes;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  const std::vector<ScoredRow> rows = held_out_by_row(calibration);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const ScenarioTraits& traits = points[i].traits;
    const auto [place, is_new] =
        places.try_emplace({traits.software, traits.device_family}, regimes.size());
    if (is_new) regimes.emplace_back();
    EvidenceRegime& regime = regimes[place->second];
    regime.software = traits.software;
    regime.device_family = traits.device_family;
    regime.method = calibration.constants.empty()
                        ? "predicted with the constants of the shipped files"
                        : (calibration.by_size.empty() ? "refitted without one random fifth each: "
                                                       : "refitted without one model size each: ") +
                              listed(calibration.constants,
                                     [](const auto& fitted) { return fitted.constant.name; });
    regime.sets.insert(points[i].set);
    regime.include(traits);
    regime.residuals.push_back(std::log(rows[i].measured / rows[i].predicted));
  }
  for (EvidenceRegime& regime : regimes) std::ranges::sort(regime.residuals);
  return regimes;
}

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
  fitted.favoured = fitted.fit.values;
  while (keep_one_more(fitted)) {
    fitted.fit = fit_free(rows, first, fitted.kept, noise_of(rows));
    for (std::size_t j = 0; j < ranges_.size(); ++j) {
      if (fitted.kept[j]) continue;
      fitted.posterior_widths[j] = fitted.fit.widths[j];
      fitted.favoured[j] = fitted.fit.values[j];
    }
  }
  const std::vector<double> before = residuals(starts(), rows);
  const std::vector<double> after = residuals(fitted.fit.values, rows);
  std::size_t worse = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (std::abs(after[i]) > std::abs(before[i]) + clearly_worse) ++worse;
  if (static_cast<double>(worse) > most_rows_worse * static_cast<double>(rows.size())) {
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

std::vector<double> ConstantFitter::sensitivities(const Indices& rows, std::vector<double> values,
                                                  std::size_t constant) {
  const FitBounds& bounds = ranges_[constant].bounds;
  const double value = values[constant],
               upper = std::min(value * std::exp(weight_step), bounds.upper),
               lower = std::max(value * std::exp(-weight_step), bounds.lower);
  values[constant] = lower;
  const std::vector<double> before = residuals(values, rows);
  values[constant] = upper;
  std::vector<double> slopes = residuals(values, rows);
  for (std::size_t i = 0; i < slopes.size(); ++i)
    slopes[i] = (slopes[i] - before[i]) / std::log(upper / lower);
  return slopes;
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

std::vector<double> ConstantFitter::starts() const { return mapped(ranges_, &FitRange::start); }

std::vector<double> ConstantFitter::residuals(const std::vector<double>& values,
                                              const Indices& rows) {
  return mapped(compare(rows, values),
                [](const ScoredRow& row) { return std::log(row.predicted / row.measured); });
}

/// Equal for each set, with a mean of 1 over the rows.
std::vector<double> ConstantFitter::weights(const Indices& rows) const {
  std::map<std::string, double> rows_of_set;
  for (const std::size_t row : rows) ++rows_of_set[(*points_)[row].set];
  const double share = static_cast<double>(rows.size()) / static_cast<double>(rows_of_set.size());
  return mapped(rows, [&](std::size_t row) { return share / rows_of_set[(*points_)[row].set]; });
}

/// Taken from the widest prior that a row has: one unmeasured stack among them, and little is known.
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
    const FitBounds& bounds = ranges_[j].bounds;
    const bool is_at_bound = std::log(fitted.fit.values[j] / bounds.lower) < at_bound_logarithm ||
                             std::log(bounds.upper / fitted.fit.values[j]) < at_bound_logarithm;
    if (move < smallest_move && !is_at_bound) {
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

}  // namespace windtunnel
