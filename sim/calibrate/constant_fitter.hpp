#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "calibrate/anchoring.hpp"
#include "calibrate/calibrate.hpp"
#include "core/robust_fit.hpp"

namespace windtunnel {

/// The constants fitted to some rows, and which of them keep their given values and why.
struct ConstantFit {
  RobustFit fit;
  std::vector<double> prior_widths;      ///< none without a prior
  std::vector<double> posterior_widths;  ///< of the fit in which a constant was last free
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
  /// Predictions of `rows` beside what was measured; without values, as the files have them.
  std::vector<ScoredRow> compare(const std::vector<std::size_t>& rows,
                                 const std::vector<double>& values);

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
  bool makes_too_many_worse(const Indices& rows, const std::vector<double>& values);

  const std::vector<CalibrationPoint>* points_;
  const CalibrationPlan* plan_;
  PointPredictor* predictor_;
  std::vector<FitRange> ranges_;
};

}  // namespace windtunnel
