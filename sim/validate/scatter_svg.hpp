#pragma once

#include <string>
#include <vector>

#include "report/chart.hpp"
#include "validate/validate.hpp"

namespace windtunnel {

/// Predicted against measured times of the sets: both axes logarithmic, dotted the line on which predictions are right and those that are 10 % off,
/// one colour a set, and keys with each set's mean absolute error. Iterations only; collectives, which take microseconds, where there is nothing else.
struct ScatterPlot {
  Chart chart;
  std::vector<ChartKey> keys;
};
ScatterPlot scatter_plot(const std::vector<ValidatedSet>& sets);

/// The plot as a picture of its own, which follows the reader's light or dark scheme. `title` is "Predicted and measured iteration times" or the like
/// where none is given.
std::string scatter_svg(const std::vector<ValidatedSet>& sets, const std::string& title = "");

}  // namespace windtunnel
