#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace windtunnel {

/// A scale from `low` to `high`, with marks at even distances.
struct ChartAxis {
  double low = 0, high = 1;
  std::string (*text)(double) = nullptr;  ///< of a mark; none: no marks
  std::string title = {};
  bool is_logarithmic = false;
  double position(double value) const;  ///< 0 at `low`, 1 at `high`
  double at(double position) const;
};

/// A picture with two axes, in SVG: a line through points, dots, or bars that stand side by side.
struct Chart {
  enum class Shape { line, dots, bars };
  /// A line from one end of an error to the other, through its dot where the errors of x and y go together.
  struct Error {
    double x_low = 0, y_low = 0, x_high = 0, y_high = 0;
  };
  struct Point {
    double x = 0, y = 0;
    std::string title = {};  ///< beside a dot; of a bar, where the pointer rests on it
    const char* colour = "#3d7cc0";
    std::optional<Error> error = {};  ///< of a dot
  };
  /// A dashed line across the chart, at a value of x unless it is of y.
  struct Rule {
    double at = 0;
    std::string name;
    bool is_of_y = false;
  };
  std::string label;  ///< for those who do not see it
  Shape shape = Shape::line;
  ChartAxis x, y;
  std::vector<Point> points = {};
  std::vector<Rule> rules = {};
};
std::string chart_svg(const Chart& chart);

/// Bars of how many of `values` lie in each of `num_bars` spans between the ends of the axis.
Chart histogram(const std::string& label, const std::vector<double>& values, const ChartAxis& x,
                std::size_t num_bars, const std::string& thing);

}  // namespace windtunnel
