#include "report/chart.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/contracts.hpp"
#include "core/count_text.hpp"
#include "core/utf8.hpp"
#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "report/page_assets.hpp"

namespace windtunnel {
namespace {

// Everything in SVG user units: some 400 across, so that the letters can be read where a page is 390 pixels wide.
constexpr double chart_width = 420, right_edge = 406;
constexpr double row_height = 36;  ///< of a row with a name
/// Points of a series beyond which marks would be a second line, and of a chart beyond which they are small.
constexpr std::size_t most_marks = 150;
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

/// A unit of a scale, with the blank before it; the largest comes first.
struct MarkUnit {
  const char* name;
  double factor;
};
std::string scaled_mark(double mark, int digits, double unit_of,
                        const std::vector<MarkUnit>& units) {
  if (unit_of == 0) unit_of = mark;
  if (mark == 0) return "0";
  const auto fits = [&](const MarkUnit& unit) {
    return std::abs(unit_of) >= unit.factor * (1 - rounding);
  };
  const auto found = std::ranges::find_if(units, fits);
  const MarkUnit& unit = found == units.end() ? units.back() : *found;
  return number_mark(mark / unit.factor, digits) + unit.name;
}

/// A coordinate, to a tenth of a unit.
std::string svg_number(double number) { return fixed_text(number, 1); }

/// A text at (x, y); `attributes` as they are written: text-anchor="end".
std::string svg_text(double x, double y, const std::string& text, const std::string& attributes) {
  return "<text x=\"" + svg_number(x) + "\" y=\"" + svg_number(y) + "\" " + attributes + ">" +
         html::escaped(text) + "</text>\n";
}

/// A line in the text's colour, faint unless its `attributes` say otherwise.
std::string svg_rule(double x1, double y1, double x2, double y2,
                     const std::string& attributes = "stroke-opacity=\"0.3\"") {
  return "<line x1=\"" + svg_number(x1) + "\" y1=\"" + svg_number(y1) + "\" x2=\"" +
         svg_number(x2) + "\" y2=\"" + svg_number(y2) + "\" stroke=\"currentColor\" " + attributes +
         "/>\n";
}

std::string element_title(const std::string& text) {
  return "<title>" + html::escaped(text) + "</title>";
}

/// A mark of that form around (x, y) that holds `content`.
std::string form_svg(std::size_t form, double x, double y, double radius, const std::string& kind,
                     const std::string& content) {
  const auto corner = [&](double right, double down) {
    return svg_number(x + right * radius) + "," + svg_number(y + down * radius) + " ";
  };
  const std::string corners =
      form % 4 == 1   ? corner(-1, -1) + corner(1, -1) + corner(1, 1) + corner(-1, 1)
      : form % 4 == 2 ? corner(0, -1.2) + corner(1.1, 0.9) + corner(-1.1, 0.9)
                      : corner(0, -1.3) + corner(1.3, 0) + corner(0, 1.3) + corner(-1.3, 0);
  if (form % 4 != 0)
    return "<polygon class=\"" + kind + "\" points=\"" + corners + "\">" + content + "</polygon>\n";
  return "<circle class=\"" + kind + "\" cx=\"" + svg_number(x) + "\" cy=\"" + svg_number(y) +
         "\" r=\"" + svg_number(radius) + "\">" + content + "</circle>\n";
}

/// A chart and the places of its parts.
class ChartDrawing {
 public:
  explicit ChartDrawing(const Chart& chart) : chart_(chart), has_rows_(!chart.rows.empty()) {
    const auto is_upright = [](const Chart::Rule& rule) { return !rule.is_of_y; };
    int longest = 3;
    for (const AxisLabel& label : labels(chart.y, 0, 0))
      longest = std::max(longest, utf8_count(label.text));
    left_ = has_rows_ ? 4 : 10 + letter_width * longest;
    top_ = 26 + label_height * static_cast<double>(std::ranges::count_if(chart.rules, is_upright));
    bottom_ =
        top_ + (has_rows_ ? row_height * static_cast<double>(chart.rows.size()) + 6 : chart.height);
  }

  double height() const { return bottom_ + (chart_.x.title.empty() ? 22 : 42); }

  std::string svg() const {
    std::string guides;
    for (const Chart::Guide& each : chart_.guides)
      guides += svg_rule(x_of(each.x1), y_of(each.y1), x_of(each.x2), y_of(each.y2),
                         "class=\"ideal " + each.kind + "\"");
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"axes\" viewBox=\"0 0 " +
           svg_number(chart_width) + " " + svg_number(height()) + "\" role=\"img\" aria-label=\"" +
           html::escaped(chart_.label) + "\">\n" + axes() + cloud() + guides + shapes() + rules() +
           "</svg>\n";
  }

 private:
  using Series = std::pair<std::string, std::vector<const Chart::Point*>>;

  double frame_width() const { return right_edge - left_; }
  double x_of(double value) const { return left_ + frame_width() * chart_.x.position(value); }
  double y_of(double value) const {
    return has_rows_ ? top_ + row_height * value
                     : bottom_ - chart_.height * chart_.y.position(value);
  }

  std::string shapes() const {
    if (chart_.shape == Chart::Shape::bars) return bars();
    std::vector<Series> all;
    for (const Chart::Point& point : chart_.points) {
      auto series = std::ranges::find(all, point.kind, &Series::first);
      if (series == all.end()) series = all.insert(series, {point.kind, {}});
      series->second.push_back(&point);
    }
    std::string svg;
    for (const auto& [kind, points] : all) {
      const bool is_curve = chart_.shape == Chart::Shape::curves,
                 is_line = points.size() > 1 && (is_curve || chart_.shape == Chart::Shape::line);
      std::string line, marks;
      for (const Chart::Point* point : points) {
        line += svg_number(x_of(point->x)) + "," + svg_number(y_of(point->y)) + " ";
        const bool is_marked = is_curve && (points.size() <= most_marks || point->is_hollow);
        if (!is_line || is_marked) marks += mark(*point);
      }
      if (is_line) svg += "<polyline points=\"" + line + "\" class=\"" + kind + "\"/>\n";
      svg += marks;
    }
    return chart_.shape == Chart::Shape::dots ? svg + dot_names() : svg;
  }

  std::string bars() const {
    std::string svg;
    const double width = frame_width() / static_cast<double>(chart_.points.size());
    for (const Chart::Point& point : chart_.points)
      if (const double y = y_of(point.y); point.y > 0)
        svg += "<rect x=\"" + svg_number(x_of(point.x) - width / 2 + 0.5) + "\" y=\"" +
               svg_number(y) + "\" width=\"" + svg_number(width - 1) + "\" height=\"" +
               svg_number(bottom_ - y) + "\" class=\"" + point.kind + "\">" +
               element_title(point.title) + "</rect>\n";
    return svg;
  }

  std::string mark(const Chart::Point& point) const {
    std::string svg;
    if (const auto& error = point.error)
      svg = svg_rule(x_of(error->x_low), y_of(error->y_low), x_of(error->x_high),
                     y_of(error->y_high), "class=\"interval " + point.kind + "\"");
    return svg + form_svg(point.form, x_of(point.x), y_of(point.y),
                          chart_.shape == Chart::Shape::dots  ? 4.5
                          : chart_.points.size() > most_marks ? 2.4
                                                              : 3.4,
                          point.kind + (point.is_hollow ? " hollow" : ""),
                          element_title(point.title));
  }

  /// As few elements as can be: there may be thousands of points.
  std::string cloud() const {
    std::string svg;
    for (const bool is_hollow : {false, true}) {
      std::string dots;
      for (const Chart::Point& point : chart_.cloud)
        if (point.is_hollow == is_hollow)
          dots += "M" + svg_number(x_of(point.x)) + " " + svg_number(y_of(point.y)) + "h0";
      if (!dots.empty())
        svg += std::string("<path class=\"cloud") + (is_hollow ? " too-large" : "") + "\" d=\"" +
               dots + "\"/>\n";
    }
    return svg;
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
        const bool is_inside = box.x >= left_ + 2 && box.x + length <= chart_width &&
                               box.y >= top_ - 4 && box.y <= bottom_ - 2;
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
    std::vector<double> marks =
        axis.marks.empty() ? round_marks(axis.low, axis.high, axis.is_logarithmic) : axis.marks;
    if (axis.is_count) std::erase_if(marks, [](double mark) { return mark != std::round(mark); });
    const std::vector<std::string> texts = mark_texts(marks, axis.text, axis.is_logarithmic);
    for (std::size_t i = 0; i < marks.size(); ++i)
      all.push_back({marks[i], from + length * axis.position(marks[i]), texts[i]});
    return all;
  }

  /// Numbers below and on the left, or the names of rows; the outer labels within the picture.
  std::string axes() const {
    std::string svg;
    for (const AxisLabel& label :
         labels_that_fit(labels(chart_.x, left_, frame_width()), letter_width, chart_width)) {
      const double x = x_of(label.mark);
      svg += (has_rows_ ? grid(x, top_, x, bottom_) : svg_rule(x, bottom_, x, bottom_ + 4)) +
             svg_text(label.place, bottom_ + 17, label.text, "text-anchor=\"middle\"");
    }
    for (const AxisLabel& label : labels(chart_.y, bottom_, -chart_.height))
      svg += grid(left_, label.place, right_edge, label.place) +
             svg_text(left_ - 6, label.place + 4, label.text, "text-anchor=\"end\"");
    for (std::size_t i = 0; i < chart_.rows.size(); ++i) {
      const double y = y_of(static_cast<double>(i));
      svg += grid(left_, y, right_edge, y) + svg_text(left_ + 6, y + 14, chart_.rows[i], "");
    }
    return svg + svg_rule(left_, bottom_, right_edge, bottom_) +
           svg_rule(left_, top_, left_, bottom_) +
           svg_text(4, 14, chart_.y.title, "class=\"title\"") +
           svg_text(right_edge, bottom_ + 35, chart_.x.title, "text-anchor=\"end\"");
  }

  static std::string grid(double x1, double y1, double x2, double y2) {
    return svg_rule(x1, y1, x2, y2, "stroke-opacity=\"0.12\"");
  }

  /// The names of upright rules stand above the chart, each in a row of its own, since the rules may lie close; the others' above or below
  /// their rule, at the end of the frame, or further left where rules lie close.
  std::string rules() const {
    std::string svg;
    double row = top_ - 6;
    std::vector<Box> taken;
    for (const Chart::Rule& rule : chart_.rules) {
      if (rule.is_of_y) {
        const double y = y_of(rule.at), length = letter_width * utf8_count(rule.name);
        const bool is_below = rule.is_named_below && y + 16 < bottom_;
        Box box{right_edge - 2 - length,
                is_below              ? y + 14
                : rule.is_named_below ? y - 12
                                      : y - 4,
                length};
        while (std::ranges::any_of(taken, [&](const Box& other) { return box.meets(other); }))
          box.x -= letter_width;
        taken.push_back(box);
        svg +=
            svg_rule(left_, y, right_edge, y, "stroke-dasharray=\"4 3\"") +
            svg_text(box.x + length, box.y, rule.name, "text-anchor=\"end\" class=\"over-rules\"");
        continue;
      }
      const double x = x_of(rule.at);
      if (x < left_ || x > right_edge) continue;
      const bool ends_here = x > left_ + frame_width() / 2;
      svg +=
          svg_rule(x, row - 10, x, bottom_, "stroke-dasharray=\"4 3\"") +
          svg_text(ends_here ? x - 5 : x + 5, row, rule.name,
                   std::string("class=\"over-rules\"") + (ends_here ? " text-anchor=\"end\"" : ""));
      row -= label_height;
    }
    return svg;
  }

  const Chart& chart_;
  bool has_rows_;
  double left_ = 0, top_ = 0, bottom_ = 0;
};

}  // namespace

std::string number_mark(double mark, int digits, double /*unit_of*/) {
  constexpr double thousand = 1e3, million = 1e6, most = 1e12;
  const bool has_whole = std::abs(mark) >= 1 && std::abs(mark) < most;
  const int whole = has_whole ? static_cast<int>(std::log10(std::abs(mark))) + 1 : 0;
  const double rounded = rounded_to(mark, std::max(digits, whole)), size = std::abs(rounded);
  if (size >= million && size < most) return number_mark(rounded / million, digits) + " M";
  std::string text = significant_text(rounded, std::max(digits, whole) + 1);
  if (size >= thousand && size < million)
    text.insert(std::min(text.find('.'), text.size()) - 3, ",");
  if (const std::size_t zero = text.find("e-0"); zero != std::string::npos) text.erase(zero + 2, 1);
  return text;
}

std::string percent_mark(double mark, int digits, double /*unit_of*/) {
  return number_mark(mark, digits) + " %";
}

std::string seconds_mark(double mark, int digits, double unit_of) {
  return scaled_mark(mark, digits, unit_of, {{" s", 1}, {" ms", 1e-3}, {" us", 1e-6}});
}

std::string bytes_mark(double mark, int digits, double unit_of) {
  return scaled_mark(
      mark, digits, unit_of,
      {{" TiB", 0x1p40}, {" GiB", 0x1p30}, {" MiB", 0x1p20}, {" KiB", 0x1p10}, {" B", 1}});
}

std::string rate_mark(double mark, int digits, double unit_of) {
  return scaled_mark(
      mark, digits, unit_of,
      {{" TB/s", 1e12}, {" GB/s", 1e9}, {" MB/s", 1e6}, {" kB/s", 1e3}, {" B/s", 1}});
}

std::vector<std::string> mark_texts(const std::vector<double>& marks, MarkText text,
                                    bool is_logarithmic) {
  double largest = 0;
  for (const double mark : marks) largest = std::max(largest, std::abs(mark));
  constexpr int least_digits = 3, most_digits = 15;
  std::vector<std::string> texts;
  for (int digits = least_digits; digits <= most_digits; ++digits) {
    texts.clear();
    for (const double mark : marks)
      texts.push_back(text(mark, digits, is_logarithmic ? 0 : largest));
    if (std::ranges::adjacent_find(texts) == texts.end()) break;
  }
  return texts;
}

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

std::vector<AxisLabel> labels_that_fit(const std::vector<AxisLabel>& labels, double width_of_letter,
                                       double right) {
  std::vector<AxisLabel> fitting;
  double free_up_to = std::numeric_limits<double>::max();
  for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
    const double half = width_of_letter * utf8_count(label->text) / 2,
                 place = std::max(half, std::min(label->place, right - half));
    if (place + half > free_up_to) continue;
    if (!fitting.empty() && fitting.back().text == label->text) continue;
    fitting.push_back({label->mark, place, label->text});
    free_up_to = place - half - width_of_letter;
  }
  return fitting;
}

std::string chart_svg(const Chart& chart) {
  return chart.points.empty() ? "" : ChartDrawing(chart).svg();
}

std::string key_mark(const std::string& kind, bool on_line, std::size_t form) {
  return (on_line ? "<line class=\"" + kind + "\" x2=\"30\"/>" : "") +
         form_svg(form, 15, 0, 3.6, kind, "");
}

std::string keys_html(const std::vector<ChartKey>& keys) {
  std::string html;
  for (const ChartKey& key : keys)
    html += "<span><svg class=\"axes\" viewBox=\"0 -6 30 12\" aria-hidden=\"true\">" + key.sample +
            "</svg> " + html::element("span", "", html::escaped(key.name)) + "</span> ";
  return html::element("p", "class=\"keys\"", html) + "\n";
}

std::string chart_sheet(const std::string& name, const std::string& note,
                        const std::vector<Chart>& charts, const std::vector<ChartKey>& keys) {
  constexpr double head = 60, key_height = 24, scale = 4.0 / 3;  // larger than on a page
  const double left = scale * chart_width + 16;
  std::string body;
  double bottom = head, key_bottom = head + key_height, right = left;
  for (const Chart& chart : charts) {
    if (chart.points.empty()) continue;
    const double height = scale * ChartDrawing(chart).height();
    body += "<svg y=\"" + svg_number(bottom) + "\" width=\"" + svg_number(scale * chart_width) +
            "\" height=\"" + svg_number(height) + "\">\n" + chart_svg(chart) + "</svg>\n";
    bottom += height;
  }
  for (const ChartKey& key : keys) {
    body += "<g class=\"axes\" transform=\"translate(" + svg_number(left) + " " +
            svg_number(key_bottom) + ")\">" + key.sample + svg_text(40, 4, key.name, "") + "</g>\n";
    key_bottom += key_height;
    right = std::max(right, left + 56 + letter_width * utf8_count(key.name));
  }
  const std::string width = svg_number(right), height = svg_number(std::max(bottom, key_bottom)),
                    size = "width=\"" + width + "\" height=\"" + height + "\"";
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" " + size + " viewBox=\"0 0 " + width + " " +
         height + "\" class=\"sheet\" role=\"img\">\n" + element_title(name) + "\n<style>" +
         std::string(detail::chart_style.text) + "</style>\n<rect class=\"page\" " + size + "/>\n" +
         svg_text(scale * 4, 30, name, "class=\"name\"") + svg_text(scale * 4, 50, note, "") +
         body + "</svg>\n";
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
  chart.y.text = number_mark;
  chart.y.title = "number of " + thing + "s";
  return chart;
}

}  // namespace windtunnel
