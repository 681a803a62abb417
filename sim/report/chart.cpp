#include "report/chart.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/contracts.hpp"
#include "core/count_text.hpp"
#include "core/utf8.hpp"
#include "report/html_text.hpp"
#include "report/number_text.hpp"

namespace windtunnel {
namespace {

// Everything in SVG user units: some 400 across, so that the letters can be read where a page is 390 pixels wide.
constexpr double chart_height = 190, right_edge = 406;
constexpr int width = 420;
constexpr double letter_width = 7.2, label_height = 16;
constexpr double marks_wanted = 5;
/// Values whose largest is this many times their smallest need a logarithmic axis.
constexpr double far_apart = 6;
/// Free part of an axis at each end.
constexpr double margin = 0.04;
/// More values than these are too many to have a mark each.
constexpr std::size_t most_value_marks = 24;
constexpr std::size_t most_round_marks = 10;
constexpr double rounding = 1e-9;

/// The smallest of 1, 2, 5 and 10 times a power of ten that is at least `value`.
double round_up(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= value * (1 - 1e-12)) return factor * power;
  return 10 * power;
}

/// The factors times the powers of ten between `low` and `high`.
std::vector<double> decade_marks(double low, double high, const std::vector<double>& factors,
                                 int every) {
  std::vector<double> marks;
  const int first = static_cast<int>(std::floor(std::log10(low)));
  for (int exponent = first; exponent <= std::log10(high) + rounding; ++exponent)
    for (const double factor : factors) {
      const double mark = factor * std::pow(10.0, exponent);
      if (exponent % every == 0 && mark >= low * (1 - rounding) && mark <= high * (1 + rounding))
        marks.push_back(mark);
    }
  return marks;
}

/// A chart and the places of its parts.
class ChartDrawing {
 public:
  explicit ChartDrawing(const Chart& chart) : chart_(chart) {
    const auto is_upright = [](const Chart::Rule& rule) { return !rule.is_of_y; };
    std::size_t longest = 3;
    for (const AxisLabel& label : labels(chart.y, 0, 0))
      longest = std::max(longest, label.text.size());
    left_ = 10 + letter_width * static_cast<double>(longest);
    top_ = 26 + label_height * static_cast<double>(std::ranges::count_if(chart.rules, is_upright));
  }

  std::string svg() const {
    const std::string name = html::escaped(chart_.label);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"axes\" viewBox=\"0 0 " +
           std::to_string(width) + " " + svg_number(bottom() + 42) +
           "\" role=\"img\" aria-label=\"" + name + "\">\n" + axes() + shapes() + rules() +
           "</svg>\n";
  }

 private:
  double chart_width() const { return right_edge - left_; }
  double bottom() const { return top_ + chart_height; }
  double x_of(double value) const { return left_ + chart_width() * chart_.x.position(value); }
  double y_of(double value) const { return bottom() - chart_height * chart_.y.position(value); }

  std::string shapes() const {
    std::string svg, line;
    const double width_of_bar = chart_width() / static_cast<double>(chart_.points.size());
    for (const Chart::Point& point : chart_.points) {
      const double x = x_of(point.x), y = y_of(point.y);
      const std::string fill = std::string("fill=\"") + point.colour + "\"><title>" +
                               html::escaped(point.title) + "</title></";
      if (chart_.shape == Chart::Shape::line)
        line += svg_number(x) + "," + svg_number(y) + " ";
      else if (chart_.shape == Chart::Shape::dots)
        svg += error_line(point) + "<circle cx=\"" + svg_number(x) + "\" cy=\"" + svg_number(y) +
               "\" r=\"4.5\" " + fill + "circle>\n";
      else if (point.y > 0)
        svg += "<rect x=\"" + svg_number(x - width_of_bar / 2 + 0.5) + "\" y=\"" + svg_number(y) +
               "\" width=\"" + svg_number(width_of_bar - 1) + "\" height=\"" +
               svg_number(bottom() - y) + "\" " + fill + "rect>\n";
    }
    if (chart_.shape == Chart::Shape::dots) svg += dot_names();
    if (line.empty()) return svg;
    return "<polyline points=\"" + line +
           "\" fill=\"none\" stroke=\"#3d7cc0\" stroke-width=\"1.6\"/>\n";
  }

  std::string error_line(const Chart::Point& point) const {
    if (!point.error) return "";
    return svg_rule(x_of(point.error->x_low), y_of(point.error->y_low), x_of(point.error->x_high),
                    y_of(point.error->y_high), "stroke-width=\"3\" stroke-opacity=\"0.35\"");
  }

  struct Box {
    double x, y, width;
    bool meets(const Box& other) const {
      return x < other.x + other.width && other.x < x + width &&
             std::abs(y - other.y) < label_height - 2;
    }
  };

  /// Each name right or left of its dot, above or below it: the first place that no other name or dot takes. A name that finds none is shown where
  /// the pointer rests on the dot.
  std::string dot_names() const {
    std::vector<Box> taken;
    for (const Chart::Point& point : chart_.points)
      taken.push_back({x_of(point.x) - 5, y_of(point.y) + 4, 10});
    std::string svg;
    for (const Chart::Point& point : chart_.points) {
      const double x = x_of(point.x), y = y_of(point.y) + 4;
      const double length = letter_width * utf8_count(point.title);
      for (const Box& box :
           {Box{x + 8, y, length}, Box{x - 8 - length, y, length},
            Box{x - length / 2, y - 13, length}, Box{x - length / 2, y + 15, length},
            Box{x + 5, y - 13, length}, Box{x - 5 - length, y - 13, length},
            Box{x + 5, y + 15, length}, Box{x - 5 - length, y + 15, length}}) {
        const bool is_inside = box.x >= left_ + 2 && box.x + length <= width && box.y >= top_ - 4 &&
                               box.y <= bottom() - 2;
        if (!is_inside ||
            std::ranges::any_of(taken, [&](const Box& other) { return box.meets(other); }))
          continue;
        taken.push_back(box);
        svg += svg_text(box.x, box.y, point.title, "class=\"over-rules\"");
        break;
      }
    }
    return svg;
  }

  static std::vector<AxisLabel> labels(const ChartAxis& axis, double from, double length) {
    std::vector<AxisLabel> all;
    if (axis.text == nullptr) return all;
    for (const double mark :
         axis.marks.empty() ? round_marks(axis.low, axis.high, axis.is_logarithmic) : axis.marks)
      all.push_back({mark, from + length * axis.position(mark), axis.text(mark)});
    return all;
  }

  std::string axes() const {
    std::string svg;
    for (const AxisLabel& label :
         labels_that_fit(labels(chart_.x, left_, chart_width()), letter_width))
      svg += svg_rule(label.place, bottom(), label.place, bottom() + 4) +
             svg_text(label.place, bottom() + 17, label.text, "text-anchor=\"middle\"");
    std::string last;
    for (const AxisLabel& label : labels(chart_.y, bottom(), -chart_height)) {
      svg += svg_rule(left_, label.place, right_edge, label.place, "stroke-opacity=\"0.12\"");
      if (label.text != last)
        svg += svg_text(left_ - 6, label.place + 4, label.text, "text-anchor=\"end\"");
      last = label.text;
    }
    return svg + svg_rule(left_, bottom(), right_edge, bottom()) +
           svg_rule(left_, top_, left_, bottom()) + svg_text(4, 14, chart_.y.title, "") +
           svg_text(right_edge, bottom() + 35, chart_.x.title, "text-anchor=\"end\"");
  }

  /// The names of upright rules stand above the chart, each in a row of its own, since the rules may lie close.
  std::string rules() const {
    std::string svg;
    double row = top_ - 6;
    for (const Chart::Rule& rule : chart_.rules) {
      if (rule.is_of_y) {
        const double y = y_of(rule.at);
        svg += svg_rule(left_, y, right_edge, y, "stroke-dasharray=\"4 3\"") +
               svg_text(right_edge - 2, rule.is_named_below ? y + 14 : y - 4, rule.name,
                        "text-anchor=\"end\" class=\"over-rules\"");
        continue;
      }
      const double x = x_of(rule.at);
      if (x < left_ || x > right_edge) continue;
      const bool ends_here = x > left_ + chart_width() / 2;
      svg +=
          svg_rule(x, row - 10, x, bottom(), "stroke-dasharray=\"4 3\"") +
          svg_text(ends_here ? x - 5 : x + 5, row, rule.name,
                   std::string("class=\"over-rules\"") + (ends_here ? " text-anchor=\"end\"" : ""));
      row -= label_height;
    }
    return svg;
  }

  const Chart& chart_;
  double left_ = 0, top_ = 0;
};

}  // namespace

double ChartAxis::position(double value) const {
  if (!(high > low)) return 0;
  return is_logarithmic ? (std::log(value) - std::log(low)) / (std::log(high) - std::log(low))
                        : (value - low) / (high - low);
}

double ChartAxis::at(double position) const {
  return is_logarithmic ? low * std::pow(high / low, position) : low + (high - low) * position;
}

std::vector<double> round_marks(double low, double high, bool is_logarithmic) {
  if (is_logarithmic) {
    std::vector<double> marks = decade_marks(low, high, {1, 2, 5}, 1);
    for (int every = 1; marks.size() > most_round_marks; ++every)
      marks = decade_marks(low, high, {1}, every);
    if (marks.size() > 1) return marks;
  }
  if (!(high > low)) return {low};
  const double step = round_up((high - low) / (marks_wanted + 1));
  const double first = std::ceil(low / step - rounding) * step;
  std::vector<double> marks;
  for (int i = 0; first + i * step <= high + rounding * step && i <= 2 * marks_wanted; ++i)
    marks.push_back(first + i * step);
  return marks;
}

ChartAxis axis_from_zero(const std::vector<double>& values) {
  const double most = values.empty() ? 0 : *std::ranges::max_element(values);
  WT_EXPECT(std::isfinite(most));
  const double step = most > 0 ? round_up(most / marks_wanted) : 1;
  const double steps = std::max(1.0, std::ceil(most / step - rounding));
  ChartAxis axis{0, steps * step};
  for (int i = 0; i <= steps; ++i) axis.marks.push_back(i * step);
  return axis;
}

ChartAxis logarithmic_axis(const std::vector<double>& values) {
  WT_EXPECT(!values.empty());
  const auto [least, most] = std::ranges::minmax_element(values);
  WT_EXPECT(*least > 0 && std::isfinite(*most));
  const double room =
      std::exp(std::max(margin * (std::log(*most) - std::log(*least)), std::log(1.1)));
  return {.low = std::max(*least / room, std::numeric_limits<double>::denorm_min()),
          .high = std::min(*most * room, std::numeric_limits<double>::max()),
          .is_logarithmic = true};
}

ChartAxis axis_over(std::vector<double> values) {
  WT_EXPECT(!values.empty());
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  const double least = values.front(), most = values.back();
  ChartAxis axis;
  if (least > 0 && most / least >= far_apart) {
    axis = logarithmic_axis(values);
  } else {
    const double room = most > least ? margin * (most - least) : 1;
    axis = {least - room, most + room};
  }
  axis.marks = values.size() > most_value_marks ? round_marks(least, most, axis.is_logarithmic)
                                                : std::move(values);
  return axis;
}

std::vector<AxisLabel> labels_that_fit(const std::vector<AxisLabel>& labels,
                                       double width_of_letter) {
  std::vector<AxisLabel> fitting;
  double free_up_to = std::numeric_limits<double>::max();
  for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
    const double half = width_of_letter * utf8_count(label->text) / 2;
    if (label->place + half > free_up_to) continue;
    if (!fitting.empty() && fitting.back().text == label->text) continue;
    fitting.push_back(*label);
    free_up_to = label->place - half - width_of_letter;
  }
  return fitting;
}

std::string chart_svg(const Chart& chart) {
  return chart.points.empty() ? "" : ChartDrawing(chart).svg();
}

Chart histogram(const std::string& label, const std::vector<double>& values, const ChartAxis& x,
                std::size_t num_bars, const std::string& thing) {
  Chart chart{label, Chart::Shape::bars, x, {}};
  const double bars = static_cast<double>(num_bars);
  for (std::size_t i = 0; i < num_bars; ++i)
    chart.points.push_back({x.at((static_cast<double>(i) + 0.5) / bars)});
  for (const double value : values)
    ++chart.points[std::min(num_bars - 1, static_cast<std::size_t>(x.position(value) * bars))].y;
  double most = marks_wanted;  // so that marks are whole numbers
  for (Chart::Point& bar : chart.points) {
    bar.title = count_text(static_cast<std::int64_t>(bar.y), thing);
    most = std::max(most, bar.y);
  }
  chart.y = axis_from_zero({most});
  chart.y.text = grouped_text;
  chart.y.title = "number of " + thing + "s";
  return chart;
}

}  // namespace windtunnel
