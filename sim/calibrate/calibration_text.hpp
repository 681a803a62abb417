#pragma once

#include <string>

#include "calibrate/calibrate.hpp"

namespace windtunnel {

/// A calibration for people:
///
///   54 points of vtrain-a100-multi-node; 4 model sizes; 1924 simulations
///
///   constant  from  fitted    bounds            refits  weight
///   emax      0.83  0.8157  0.3 .. 1  0.8057 .. 0.8293    0.65  well identified
///
///   error                mean  median    90th   worst    bias  without the 3 largest
///   as given            5.1 %   2.2 %  13.2 %  38.2 %  -3.2 %  3.2 %
///   fitted, in-sample   …
///   leave one size out  …
///   random folds        …
///
///   left out  rows   mean    bias  emax
///   3.6B         9  3.0 %  +1.2 %  0.8145
///
/// The columns of refits are those without one model size each, or one fold where there is one size
/// only.
std::string calibration_text(const Calibration& calibration, const CalibrationPoints& points,
                             std::size_t num_predictions);

/// The same as one JSON document, windtunnel/calibration-v1, with errors as fractions.
JsonValue calibration_value(const Calibration& calibration, const CalibrationPoints& points,
                            std::size_t num_predictions);

/// [{"id", "why"}...] of rows that were left out.
JsonValue skipped_value(const std::vector<std::pair<std::string, std::string>>& skipped);

/// "+-3.1 %": of ln(constant).
std::string width_text(double width);

/// "well identified", or what is wrong with the constant.
std::string identification_text(const FittedConstant& fitted);

/// What a constant at its bound is, and what that means: "emax ends at the upper bound of its range, 1 (range 0.3 to 1, …".
std::string bound_text(const FittedConstant& fitted);

/// The names of the sets, in the order of the points.
std::vector<std::string> set_names(const CalibrationPoints& points);

}  // namespace windtunnel
