#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/calibration_points.hpp"
#include "core/robust_fit.hpp"
#include "evidence/score.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {

/// Predicts points at values of the constants, several at a time, and remembers
/// them: a refit without some points starts from what the fit to all of them has computed.
class PointPredictor {
 public:
  /// The iteration time of a point with values laid over it. Called on several threads at a time.
  using Predict = std::function<Seconds(const CalibrationPoint&, const Overrides&)>;
  /// Called with the number of predictions made so far.
  using OnProgress = std::function<void(std::size_t)>;

  PointPredictor(const std::vector<CalibrationPoint>& points,
                 const std::vector<FitConstant>& constants, Predict predict,
                 OnProgress on_progress = {});

  /// Predicted times of the points at `indices`, in their order; without values, as their files have them. A point
  /// that fails throws what its prediction threw.
  std::vector<Seconds> predict(const std::vector<double>& values,
                               const std::vector<std::size_t>& indices);
  std::size_t num_predictions() const { return num_predictions_; }

 private:
  const std::vector<CalibrationPoint>* points_;
  const std::vector<FitConstant>* constants_;
  Predict predict_;
  OnProgress on_progress_;
  std::map<std::vector<double>, std::map<std::size_t, Seconds>> known_;
  std::size_t num_predictions_ = 0;
};

/// Predicts by simulation. `overrides` (--set) come before those of the constants.
PointPredictor::Predict predict_by_simulation(const Library& library, Overrides overrides);

/// Identifiability of a constant, given the measurements.
enum class Identification {
  good,
  weak,          ///< refits without some rows give values more than 10 % away to either side
  traded,        ///< another constant makes up for it (correlation above 0.9)
  at_bound,      ///< the fit moved to a bound: the value is the bound's, not the rows'
  one_row,       ///< most of what is known of it comes from a single row
  no_effect,     ///< the rows do not depend on it: the start value stands
  prior_only,    ///< the posterior is hardly narrower than the prior: the given value is kept
  agrees,        ///< the given value lies within two widths of the posterior: it is kept
  contradicted,  ///< the fitted values make too many rows worse: the given ones are kept
};

/// Position of a value within its bounds.
enum class BoundSide { inside, lower, upper };

/// One constant after the fit.
struct FittedConstant {
  FitConstant constant;
  FitRange range;
  NumberWithUnit given;            ///< as the scenario files have it
  double value = 0;                ///< fitted, in the unit of `given`
  double lowest = 0, highest = 0;  ///< of the refits without one model size (or one fold) each
  double prior_width = 0;      ///< standard deviation of ln(constant) before the rows; 0: no prior
  double posterior_width = 0;  ///< and after them
  double favoured =
      0;  ///< with a prior: the value where the constant was last free, before it was kept
  double sensitivity = 0;    ///< mean |d ln(time) / d ln(constant)| over the points
  double largest_share = 0;  ///< of the squared sensitivities: that of the row that says most
  double correlation = 0;    ///< the largest in size with another constant's error
  std::string partner;       ///< that constant
  Identification identification = Identification::good;

  BoundSide side() const;
  /// True when the given value stands: no file takes another one.
  bool is_kept() const;
};

/// Rows that were left out, the constants of a refit without them, and their predictions by it.
struct HeldOut {
  std::string name;
  std::vector<std::size_t> points;  ///< indices
  std::vector<double> values;
  std::vector<ScoredRow> comparisons;
  std::vector<ScoredRow> anchored;  ///< moved by what the other rows missed
};

/// Constants fitted to measured iterations, with errors on rows that the fit saw and did not see.
struct Calibration {
  std::vector<FittedConstant> constants;
  std::vector<ScoredRow> as_given;  ///< with the values that the files have
  std::vector<ScoredRow> in_sample;
  std::vector<HeldOut> by_size;  ///< refits without one model size each; none with a single size
  std::vector<HeldOut> by_fold;  ///< refits without one random fifth each
};

/// Starting point of a fit.
enum class PriorKind {
  shipped,  ///< log-normal around the given values; what the rows do not identify keeps its value
  none,     ///< the rows alone decide: for constants of which the given value says nothing, as when
            ///< the given one was itself fitted to these rows
};

/// Options of a calibration.
struct CalibrationPlan {
  std::vector<FitConstant> constants;  ///< none: everything is scored as given
  std::uint64_t seed = 0;              ///< of the folds
  PriorKind prior = PriorKind::shipped;
};

/// Fits the constants to all points, and again without each model size and each of five random
/// folds. Every set weighs the same, however many rows it has. See robust_fit() for the method.
/// With a prior, constants that the rows do not identify are kept at their given values one after the
/// other, the least identified first, and the others fitted again.
Calibration calibrate(const std::vector<CalibrationPoint>& points, const CalibrationPlan& plan,
                      PointPredictor& predictor);

/// The comparisons of all groups, or those that are anchored.
std::vector<ScoredRow> all_of(const std::vector<HeldOut>& groups,
                              std::vector<ScoredRow> HeldOut::*rows = &HeldOut::comparisons);

/// Residuals of measured rows, from which predictions near them are corrected.
AnchoredResiduals anchors_of(const std::vector<CalibrationPoint>& points,
                             const std::vector<std::size_t>& rows,
                             const std::vector<ScoredRow>& comparisons);
/// `comparisons` of `rows`, moved by `anchors`.
std::vector<ScoredRow> anchored(std::vector<ScoredRow> comparisons,
                                const std::vector<CalibrationPoint>& points,
                                const std::vector<std::size_t>& rows,
                                const AnchoredResiduals& anchors);

/// For each point the prediction that was made without having seen it: by model size, by fold where
/// there is one size only, or as given when nothing was fitted.
std::vector<ScoredRow> held_out_by_row(const Calibration& calibration);

/// The regimes that the held-out predictions are evidence for: points by stack and GPU family, with
/// the residuals of held_out_by_row().
std::vector<EvidenceRegime> evidence_of(const std::vector<CalibrationPoint>& points,
                                        const Calibration& calibration);

/// The constants fitted to some rows, and which of them keep their given values and why.
struct ConstantFit {
  RobustFit fit;
  std::vector<double> prior_widths;      ///< none without a prior
  std::vector<double> posterior_widths;  ///< of the fit in which a constant was last free
  std::vector<double> favoured;          ///< and its value there
  std::vector<std::optional<Identification>> kept;  ///< empty: the fitted value stands
};

/// Fits and refits; all predictions go through one memory.
class ConstantFitter {
 public:
  ConstantFitter(const std::vector<CalibrationPoint>& points, const CalibrationPlan& plan,
                 PointPredictor& predictor);

  const std::vector<FitRange>& ranges() const { return ranges_; }
  /// Fits to `rows`, from `start` (empty: from the given values).
  ConstantFit fit(const std::vector<std::size_t>& rows, const std::vector<double>& start = {});
  /// Predictions of `rows` next to what was measured; without values, as the files have them.
  std::vector<ScoredRow> compare(const std::vector<std::size_t>& rows,
                                 const std::vector<double>& values);
  /// d ln(time) / d ln(constant) of each row at these values, whether or not a fit may move the constant.
  std::vector<double> sensitivities(const std::vector<std::size_t>& rows,
                                    std::vector<double> values, std::size_t constant);

 private:
  using Indices = std::vector<std::size_t>;
  using Kept = std::vector<std::optional<Identification>>;

  RobustFit fit_free(const Indices& rows, const std::vector<double>& start, const Kept& kept,
                     double noise);
  std::vector<double> starts() const;
  std::vector<double> residuals(const std::vector<double>& values, const Indices& rows);
  std::vector<double> weights(const Indices& rows) const;
  std::vector<double> spreads(const Indices& rows) const;
  double noise_of(const Indices& rows) const;
  /// Keeps one more constant at its given value; false when all free ones are identified.
  bool keep_one_more(ConstantFit& fitted) const;

  const std::vector<CalibrationPoint>* points_;
  const CalibrationPlan* plan_;
  PointPredictor* predictor_;
  std::vector<FitRange> ranges_;
};

}  // namespace windtunnel
