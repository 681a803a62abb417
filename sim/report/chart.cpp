#include "report/chart.hpp"

#include <algorithm>

#include "core/count_text.hpp"
#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "report/svg_text.hpp"

namespace windtunnel {
namespace {

// Everything in SVG user units.
constexpr double left = 90, top = 60, chart_width = 820, chart_height = 250;
constexpr double right_edge = left + chart_width, bottom = top + chart_height;
constexpr int width = 1080, height = 360;
constexpr int num_spaces = 4;  ///< between marks
constexpr double label_height = 17;

double x_of(const Chart& chart, double value) {
  return left + chart_width * chart.x.position(value);
}
double y_of(const Chart& chart, double value) {
  return bottom - chart_height * chart.y.position(value);
}

std::string error_line(const Chart& chart, const Chart::Point& point) {
  if (!point.error) return "";
  return svg_rule(x_of(chart, point.error->x_low), y_of(chart, point.error->y_low),
                  x_of(chart, point.error->x_high), y_of(chart, point.error->y_high),
                  "stroke-width=\"4\" stroke-opacity=\"0.35\"");
}

std::string shapes(const Chart& chart) {
  std::string svg, line;
  const double width_of_bar = chart_width / static_cast<double>(chart.points.size());
  for (const Chart::Point& point : chart.points) {
    const double x = x_of(chart, point.x), y = y_of(chart, point.y);
    const double text_y = y + (point.error ? label_height : 4);  // clear of the line
    const bool is_near_edge = x > left + chart_width * 3 / 4;
    const std::string fill = std::string("fill=\"") + point.colour + "\"><title>" +
                             html::escaped(point.title) + "</title></";
    if (chart.shape == Chart::Shape::line)
      line += svg_number(x) + "," + svg_number(y) + " ";
    else if (chart.shape == Chart::Shape::dots)
      svg += error_line(chart, point) + "<circle cx=\"" + svg_number(x) + "\" cy=\"" +
             svg_number(y) + "\" r=\"6\" " + fill + "circle>\n" +
             (is_near_edge ? svg_text(x - 10, text_y, point.title, "text-anchor=\"end\"")
                           : svg_text(x + 10, text_y, point.title, ""));
    else if (point.y > 0)
      svg += "<rect x=\"" + svg_number(x - width_of_bar / 2 + 1) + "\" y=\"" + svg_number(y) +
             "\" width=\"" + svg_number(width_of_bar - 2) + "\" height=\"" +
             svg_number(bottom - y) + "\" " + fill + "rect>\n";
  }
  if (line.empty()) return svg;
  return "<polyline points=\"" + line +
         "\" fill=\"none\" stroke=\"#3d7cc0\" stroke-width=\"2\"/>\n";
}

std::string axes(const Chart& chart) {
  std::string svg = svg_rule(left, bottom, right_edge, bottom) + svg_rule(left, top, left, bottom);
  for (int i = 0; i <= num_spaces; ++i) {
    const double share = static_cast<double>(i) / num_spaces;
    if (chart.x.text != nullptr)
      svg += svg_text(left + chart_width * share, bottom + 20, chart.x.text(chart.x.at(share)),
                      "text-anchor=\"middle\"");
    if (chart.y.text != nullptr)
      svg += svg_text(left - 8, bottom - chart_height * share + 4, chart.y.text(chart.y.at(share)),
                      "text-anchor=\"end\"");
  }
  return svg + svg_text(left + chart_width / 2, bottom + 42,
                        chart.x.title + "; up: " + chart.y.title, "text-anchor=\"middle\"");
}

/// The names of upright rules stand above the chart, each in a row of its own, since the rules may lie close.
std::string rules(const Chart& chart) {
  std::string svg;
  double row = top - 6;
  for (const Chart::Rule& rule : chart.rules) {
    if (rule.is_of_y) {
      const double y = y_of(chart, rule.at);
      svg += svg_rule(left, y, right_edge, y, "stroke-dasharray=\"4 3\"") +
             svg_text(right_edge + 6, y + 4, rule.name, "");
      continue;
    }
    const double x = x_of(chart, rule.at);
    if (x < left || x > right_edge) continue;
    svg += svg_rule(x, row - 10, x, bottom, "stroke-dasharray=\"4 3\"") +
           svg_text(x + 5, row, rule.name, "class=\"over-rules\"");
    row -= label_height;
  }
  return svg;
}

}  // namespace

double ChartAxis::position(double value) const {
  if (!(high > low)) return 0;
  return is_logarithmic ? std::log(value / low) / std::log(high / low)
                        : (value - low) / (high - low);
}

double ChartAxis::at(double position) const {
  return is_logarithmic ? low * std::pow(high / low, position) : low + (high - low) * position;
}

std::string chart_svg(const Chart& chart) {
  if (chart.points.empty()) return "";
  return svg_chart(chart.label, width, height, shapes(chart) + axes(chart) + rules(chart));
}

Chart histogram(const std::string& label, const std::vector<double>& values, const ChartAxis& x,
                std::size_t num_bars, const std::string& thing) {
  Chart chart{label, Chart::Shape::bars, x, {0, 0, grouped_text, "number of " + thing + "s"}};
  const double bars = static_cast<double>(num_bars);
  for (std::size_t i = 0; i < num_bars; ++i)
    chart.points.push_back({x.at((static_cast<double>(i) + 0.5) / bars)});
  for (const double value : values)
    ++chart.points[std::min(num_bars - 1, static_cast<std::size_t>(x.position(value) * bars))].y;
  for (Chart::Point& bar : chart.points) {
    bar.title = count_text(static_cast<std::int64_t>(bar.y), thing);
    chart.y.high = std::max(chart.y.high, num_spaces * std::ceil(bar.y / num_spaces));
  }
  return chart;
}

}  // namespace windtunnel
