#pragma once

#include <string>
#include <vector>

#include "validate/validate.hpp"

namespace windtunnel {

/// Whether the picture carries its style, or stands in a page that has it.
enum class ScatterStyle { own, of_page };

/// Predicted against measured times of the sets as an SVG picture: both axes logarithmic, the line
/// on which predictions are right, the band of ±10 % around it, one colour a set, and a legend with
/// each set's mean absolute error. Follows the reader's light or dark scheme. Iterations only;
/// collectives, which take microseconds, where there is nothing else. `title` is "Predicted and measured iteration times" or the like
/// where none is given.
std::string scatter_svg(const std::vector<ValidatedSet>& sets,
                        ScatterStyle style = ScatterStyle::own, const std::string& title = "");

/// A logarithmic axis over whole decades.
struct LogAxis {
  int first_decade = 0, last_decade = 1;  ///< powers of ten at both ends

  /// The fewest decades that hold all `values`, at least one.
  static LogAxis around(const std::vector<double>& values);
  /// 0 at the first decade, 1 at the last.
  double position(double value) const;
};

}  // namespace windtunnel
