#include "validate/scatter_svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/contracts.hpp"
#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "report/page_assets.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using html::escaped;

// Everything in SVG user units.
constexpr double left = 86, top = 78, side = 520, legend_left = left + side + 36;
constexpr double width = legend_left + 284, height = top + side + 74;
constexpr double band = 0.10;

/// Paul Tol's "muted" scheme with grey, told apart by colour-blind readers on white and on black.
constexpr std::array colours{"#4477aa", "#ee6677", "#228833", "#c98f00", "#2aa5c4",
                             "#aa3377", "#8c6d5a", "#7a7adb", "#999933", "#7f7f7f"};

/// 1e-5 s as "10 µs".
std::string time_text(int decade) {
  const int exponent = decade >= -1 ? 0 : decade >= -3 ? -3 : -6;
  const char* unit = exponent == 0 ? " s" : exponent == -3 ? " ms" : " µs";
  const int digits = std::max(0, exponent - decade);
  return fixed_text(std::pow(10.0, decade - exponent), digits) + unit;
}

/// Where values stand in the square.
struct Square {
  LogAxis axis;
  double x(double value) const { return left + side * axis.position(value); }
  double y(double value) const { return top + side * (1 - axis.position(value)); }
};

std::string grid(const Square& square) {
  std::string minor, major;
  for (int decade = square.axis.first_decade; decade <= square.axis.last_decade; ++decade) {
    const double value = std::pow(10.0, decade);
    for (int i = 2; i < 10 && decade < square.axis.last_decade; ++i) {
      minor += svg_line(square.x(i * value), top, square.x(i * value), top + side, "minor");
      minor += svg_line(left, square.y(i * value), left + side, square.y(i * value), "minor");
    }
    major += svg_line(square.x(value), top, square.x(value), top + side, "grid");
    major += svg_line(left, square.y(value), left + side, square.y(value), "grid");
    major +=
        svg_text(square.x(value), top + side + 20, time_text(decade), "text-anchor=\"middle\"");
    major += svg_text(left - 10, square.y(value) + 4, time_text(decade), "text-anchor=\"end\"");
  }
  return minor + major;
}

/// The band of ±10 % and the line in its middle, cut to the square.
std::string guides(const Square& square) {
  const double low = std::pow(10.0, square.axis.first_decade);
  const double high = std::pow(10.0, square.axis.last_decade);
  const auto corner = [&](double x, double y) {
    return svg_number(square.x(x)) + "," + svg_number(square.y(y)) + " ";
  };
  return "<polygon class=\"band\" points=\"" + corner(low, low) + corner(low, low * (1 + band)) +
         corner(high / (1 + band), high) + corner(high, high) + corner(high, high * (1 - band)) +
         corner(low / (1 - band), low) + "\"/>\n" +
         svg_line(left, top + side, left + side, top, "right");
}

/// Of one set: colours that come again have another shape.
struct Marker {
  std::string colour;
  std::size_t shape = 0;

  explicit Marker(std::size_t set)
      : colour(colours[set % colours.size()]), shape(set / colours.size()) {}

  std::string group() const {
    return "<g class=\"point\" fill=\"" + colour + "\" stroke=\"" + colour + "\">\n";
  }
  std::string at(double x, double y, double radius, const std::string& content) const {
    const auto corner = [&](double right, double down) {
      return svg_number(x + right * radius) + "," + svg_number(y + down * radius) + " ";
    };
    if (shape % 4 == 0)
      return "<circle cx=\"" + svg_number(x) + "\" cy=\"" + svg_number(y) + "\" r=\"" +
             svg_number(radius) + "\">" + content + "</circle>\n";
    const std::string corners =
        shape % 4 == 1   ? corner(-1, -1) + corner(1, -1) + corner(1, 1) + corner(-1, 1)
        : shape % 4 == 2 ? corner(0, -1.2) + corner(1.1, 0.9) + corner(-1.1, 0.9)
                         : corner(0, -1.3) + corner(1.3, 0) + corner(0, 1.3) + corner(-1.3, 0);
    return "<polygon points=\"" + corners + "\">" + content + "</polygon>\n";
  }
};

std::string points(const Square& square, const ValidatedSet& set, const Marker& marker) {
  std::string text = marker.group();
  for (const ScoredRow& row : set.comparisons)
    text +=
        marker.at(square.x(row.measured / Seconds{1}), square.y(row.predicted / Seconds{1}), 3.4,
                  "<title>" +
                      escaped(row.id + ": measured " + to_text(row.measured) + ", predicted " +
                              to_text(row.predicted) + ", " + signed_percent_text(row.error())) +
                      "</title>");
  return text + "</g>\n";
}

/// Two lines for each of a few sets; one where the square is not high enough.
std::string legend_entry(const ValidatedSet& set, const Marker& marker, std::size_t index,
                         std::size_t num_sets) {
  constexpr double two_lines = 42;
  const double pitch = std::min(two_lines, side / static_cast<double>(num_sets));
  const double y = top + std::min(14.0, pitch) + pitch * static_cast<double>(index);
  const double error = 100 * score(set.comparisons).mape;
  const std::string entry =
      marker.group() + marker.at(legend_left, y - 4, pitch < two_lines ? 4.5 : 6, "") + "</g>\n";
  if (pitch < two_lines)
    return entry + svg_text(legend_left + 16, y,
                            set.name + ": " + std::to_string(set.comparisons.size()) + ", " +
                                fixed_text(error, 1) + " %",
                            "class=\"quiet\"");
  return entry + svg_text(legend_left + 16, y, set.name, "") +
         svg_text(legend_left + 16, y + 17,
                  std::to_string(set.comparisons.size()) + " points, mean error " +
                      fixed_text(error, 1) + " %",
                  "class=\"quiet\"");
}

std::string head(const std::string& title, std::size_t num_points, const std::string& style) {
  const std::string size =
      "width=\"" + svg_number(width) + "\" height=\"" + svg_number(height) + "\"";
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" " + size + " viewBox=\"0 0 " +
         svg_number(width) + " " + svg_number(height) +
         "\" role=\"img\" class=\"scatter\">\n<title>" + title + "</title>\n" + style +
         "<rect class=\"page\" " + size + " rx=\"8\"/>\n" +
         svg_text(left, 34, title, "class=\"title\"") +
         svg_text(left, 56,
                  std::to_string(num_points) + " measured runs; dashed: exact; band: within 10 %",
                  "class=\"quiet\"");
}

std::string labels() {
  const double middle = top + side / 2;
  return svg_text(left + side / 2, top + side + 50, "measured", "text-anchor=\"middle\"") +
         svg_text(24, middle, "predicted",
                  "text-anchor=\"middle\" transform=\"rotate(-90 24 " + svg_number(middle) + ")\"");
}

/// Those with iterations; all with comparisons where none has.
std::vector<ValidatedSet> shown(const std::vector<ValidatedSet>& sets) {
  std::vector<ValidatedSet> iterations, all;
  for (const ValidatedSet& set : sets) {
    if (set.comparisons.empty()) continue;
    all.push_back(set);
    if (set.kind == MeasurementKind::iteration) iterations.push_back(set);
  }
  return iterations.empty() ? all : iterations;
}

}  // namespace

LogAxis LogAxis::around(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto [low, high] = std::ranges::minmax_element(values);
  WT_EXPECT(*low > 0);
  LogAxis axis;
  axis.first_decade = static_cast<int>(std::floor(std::log10(*low)));
  axis.last_decade = static_cast<int>(std::ceil(std::log10(*high)));
  axis.last_decade = std::max(axis.last_decade, axis.first_decade + 1);
  return axis;
}

double LogAxis::position(double value) const {
  return (std::log10(value) - first_decade) / (last_decade - first_decade);
}

std::string scatter_svg(const std::vector<ValidatedSet>& sets, ScatterStyle style,
                        const std::string& title) {
  const std::vector<ValidatedSet> drawn = shown(sets);
  std::vector<double> times;
  std::size_t num_points = 0;
  for (const ValidatedSet& set : drawn) {
    num_points += set.comparisons.size();
    for (const ScoredRow& row : set.comparisons) {
      times.push_back(row.measured / Seconds{1});
      times.push_back(row.predicted / Seconds{1});
    }
  }
  const bool iterations = drawn.empty() || drawn.front().kind == MeasurementKind::iteration;
  const Square square{LogAxis::around(times)};
  std::string svg = head(!title.empty() ? title
                         : iterations   ? "Predicted and measured iteration times"
                                        : "Predicted and measured collective times",
                         num_points,
                         style == ScatterStyle::own
                             ? "<style>" + std::string(detail::scatter_style.text) + "</style>\n"
                             : "") +
                    grid(square) + guides(square);
  for (std::size_t i = 0; i < drawn.size(); ++i)
    svg += points(square, drawn[i], Marker(i)) + legend_entry(drawn[i], Marker(i), i, drawn.size());
  return svg + "<rect class=\"frame\" x=\"" + svg_number(left) + "\" y=\"" + svg_number(top) +
         "\" width=\"" + svg_number(side) + "\" height=\"" + svg_number(side) + "\"/>\n" +
         labels() + "</svg>\n";
}

}  // namespace windtunnel
