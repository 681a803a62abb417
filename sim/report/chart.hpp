#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace windtunnel {

/// A mark of an axis as text, with `digits` significant digits, in the unit that suits `unit_of`; 0: the mark itself.
using MarkText = std::string (*)(double mark, int digits, double unit_of);
std::string number_mark(double mark, int digits,
                        double unit_of = 0);  ///< "0.25", "10,000", "1.5 M", "1e-6"
std::string percent_mark(double mark, int digits, double unit_of = 0);  ///< of a percentage: "40 %"
/// Each in the unit that suits it: "250 ms", "2 s"; "16 MiB"; "25 GB/s".
std::string seconds_mark(double mark, int digits, double unit_of = 0);
std::string bytes_mark(double mark, int digits, double unit_of = 0);
std::string rate_mark(double mark, int digits, double unit_of = 0);
/// The marks as text, with as few digits as tell each from the next, and at least three.
std::vector<std::string> mark_texts(const std::vector<double>& marks, MarkText text,
                                    bool is_logarithmic);

/// A scale from `low` to `high`.
struct ChartAxis {
  double low = 0, high = 1;
  MarkText text = nullptr;  ///< none: no marks
  std::string title = {};
  bool is_logarithmic = false;
  std::vector<double> marks = {};       ///< none: round_marks() between the ends
  bool is_count = false;                ///< only whole numbers are marks
  double position(double value) const;  ///< 0 at `low`, 1 at `high`
  double at(double position) const;
};

/// From 0 to a round number that no value exceeds.
ChartAxis axis_from_zero(const std::vector<double>& values);
/// Over the values, which are above 0, with room at both ends.
ChartAxis logarithmic_axis(const std::vector<double>& values);
/// Over the values, with room at both ends: logarithmic where they are above 0 and far apart. The values are its marks, unless they are many.
ChartAxis axis_over(std::vector<double> values);

/// 1, 2 and 5 times a power of ten: on a linear axis the multiples of one such number, some five of them; on a logarithmic one all of them, or
/// only powers of ten where these are many.
std::vector<double> round_marks(double low, double high, bool is_logarithmic);

/// A text of an axis around its place, both in the units of the picture.
struct AxisLabel {
  double mark = 0, place = 0;
  std::string text;
};
/// The labels that can stand side by side in letters of this width and left of `right`, the last first; of neighbours with the same text one.
std::vector<AxisLabel> labels_that_fit(const std::vector<AxisLabel>& labels, double letter_width,
                                       double right = 1e9);

/// A picture with two axes, in SVG: lines through points, dots, or bars that stand side by side. It is as wide as the page lets it be, and can be
/// read on a telephone. The colours of its kinds are those of chart.css; points of one kind are a series:
///
///   Chart{"tokens/s by GPUs", Chart::Shape::curves, gpus, tokens, {{8, 800, "8: 800", "s0"}, {16, 1500, "16: 1,500", "s0"}}}
struct Chart {
  /// `line`: through the points of each series. `curves`: with a mark at each point, unless they are so many that they would be a second line.
  /// `marks`: these alone. `dots`: marks with their titles next to them.
  enum class Shape { line, curves, marks, dots, bars };
  /// A line from one end of an error to the other, through its dot where the errors of x and y go together.
  struct Error {
    double x_low = 0, y_low = 0, x_high = 0, y_high = 0;
  };
  struct Point {
    double x = 0, y = 0;
    std::string title = {};  ///< next to a dot where there is room, and under the pointer
    std::string kind = "s0";
    std::optional<Error> error = {};  ///< of a mark or dot
    bool is_hollow = false;           ///< of a plan that does not fit, say
    std::size_t form = 0;             ///< of a mark: circle, square, triangle, diamond, and again
  };
  /// A dashed line across the chart, at a value of x unless it is of y.
  struct Rule {
    double at = 0;
    std::string name;
    bool is_of_y = false;
    bool is_named_below = false;  ///< a rule of y that the line stays above, where there is room
  };
  /// A dotted line between two places, in the colour of a series: what would be ideal.
  struct Guide {
    double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
    std::string kind;
  };
  std::string label;  ///< for those who do not see it
  Shape shape = Shape::line;
  ChartAxis x, y;
  std::vector<Point> points = {};
  std::vector<Rule> rules = {};
  std::vector<Guide> guides = {};
  std::vector<Point> cloud = {};  ///< of no series: small dots without a title
  /// Names of y = 0, 1, 2, … from the top, in place of an axis: each stands above the marks of its row.
  std::vector<std::string> rows = {};
  double height = 190;  ///< of the frame, where there are no rows
};
/// Empty where there are no points.
std::string chart_svg(const Chart& chart);

/// A line or mark of a chart, as SVG 30 wide around y = 0, and what it means.
struct ChartKey {
  std::string sample, name;
};
/// A mark, on a line or alone, as a key shows it.
std::string key_mark(const std::string& kind, bool on_line = false, std::size_t form = 0);
/// The keys side by side, as HTML; a long one breaks next to its mark.
std::string keys_html(const std::vector<ChartKey>& keys);
/// The charts below each other in one file, under a name and a note, with their keys next to them.
std::string chart_sheet(const std::string& name, const std::string& note,
                        const std::vector<Chart>& charts, const std::vector<ChartKey>& keys);

/// Bars of how many of `values` lie in each of `num_bars` spans between the ends of the axis.
Chart histogram(const std::string& label, const std::vector<double>& values, const ChartAxis& x,
                std::size_t num_bars, const std::string& thing);

}  // namespace windtunnel
