#pragma once

#include <string>
#include <vector>

#include "calibrate/calibrate.hpp"

namespace windtunnel {

/// Number of trial calibrations, and of rows in each.
struct DrawPlan {
  int draws = 0;
  std::size_t rows = 3;  ///< what a user measures in an afternoon
};

/// One calibration on drawn rows and what it did to the others.
struct Draw {
  bool changes_something = false;  ///< false: every constant kept its value
  /// Mean absolute errors of the rows not drawn.
  double given_error = 0, fitted_error = 0, anchored_error = 0;

  double fitted_ratio() const { return fitted_error / given_error; }
  double anchored_ratio() const { return anchored_error / given_error; }
};

/// Calibrates on `rows` drawn rows, `draws` times. At least one more row than are drawn.
std::vector<Draw> draw_calibrations(const std::vector<CalibrationPoint>& points,
                                    const CalibrationPlan& plan, const DrawPlan& draws,
                                    PointPredictor& predictor);

/// Effect of the draws on the errors, as one JSON document, windtunnel/calibration-draws-v1.
JsonValue draws_value(const std::vector<Draw>& draws, const DrawPlan& plan, std::size_t rows);
/// The same for people:
///
///   200 draws of 3 rows of 54: error of the rest with the given constants 5.1 %
///     a constant is changed in 12 draws
///
///     error after / before  median  95th  worst
///     fitted                  1.00  1.00   1.21
///     fitted and anchored     0.99  1.01   1.21
std::string draws_text(const JsonValue& draws);

/// `exact`, called at most once a point and grid value. Between grid values, 2.5 % apart, ln(time) is
/// linear in ln(constant); constants act one by one, so that several together are approximate. A
/// constant at its given value is exact.
PointPredictor::Predict tabulated(PointPredictor::Predict exact,
                                  const std::vector<FitConstant>& constants);

}  // namespace windtunnel
