#include "sweep/sweep_svg.hpp"

#include <algorithm>
#include <functional>
#include <optional>

#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "report/page_assets.hpp"
#include "report/svg_text.hpp"
#include "sweep/plot_data.hpp"

namespace windtunnel {
namespace {

// Everything in SVG user units: a picture, the frame of its curves, and the name and the key of a file that holds all pictures.
constexpr double picture_width = 560, frame_left = 66, frame_top = 34, frame_width = 478,
                 frame_height = 226, below_frame = 52;
constexpr double name_height = 56, key_width = 282, key_height = 24;
constexpr double least_between_marks = 42, least_between_slanted = 17;
constexpr double slant_height = 66;  ///< of names that stand aslant

/// Series beyond these would have no colour in curves.css.
static_assert(most_series == 8);

/// Points of a series beyond which marks would be a second line.
constexpr std::size_t most_marks = 150;
constexpr double letter_width = 6.6;  ///< of the marks' font
constexpr std::size_t longest_category = 18;

/// One quantity of each point over the axis of the sweep.
struct Panel {
  std::string title;
  std::function<std::optional<double>(const PlotPoint&)> value;
  PlotAxis axis;
  std::string unit = {};   ///< behind the marks
  bool has_ideal = false;  ///< beside each line the throughput of its smallest cluster, scaled up

  double at(double number) const { return frame_top + frame_height * (1 - axis.position(number)); }
};

class SweepPlot {
 public:
  explicit SweepPlot(const PlotData& data) : data_(data), x_axis_(x_axis(data)) {}

  /// The pictures below each other in one file, their key beside them.
  std::string file(const std::string& name) const {
    std::string body;
    double y = name_height;
    for (const std::string& picture : pictures()) {
      body += "<svg y=\"" + svg_number(y) + "\" width=\"" + svg_number(picture_width) +
              "\" height=\"" + svg_number(height()) + "\">\n" + picture + "</svg>\n";
      y += height();
    }
    double key_top = name_height + frame_top;
    for (const CurveKey& key : curve_keys(data_)) {
      body += "<g transform=\"translate(" + svg_number(picture_width + 16) + " " +
              svg_number(key_top += key_height) + ")\">" + key.sample +
              svg_text(40, 4, key.name, "") + "</g>\n";
    }
    const std::string width = svg_number(picture_width + key_width),
                      size = "width=\"" + width + "\" height=\"" + svg_number(y) + "\"";
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" " + size + " viewBox=\"0 0 " + width + " " +
           svg_number(y) + "\" class=\"curves\" role=\"img\">\n<title>" + html::escaped(name) +
           "</title>\n<style>" + std::string(detail::curves_style.text) +
           "</style>\n<rect class=\"page\" " + size + "/>\n" +
           svg_text(frame_left, 36, name, "class=\"title\"") + body + "</svg>\n";
  }

  /// Each panel as a picture of its own.
  std::vector<std::string> pictures() const {
    std::vector<std::string> all;
    for (const Panel& panel : panels())
      all.push_back("<svg class=\"curves\" viewBox=\"0 0 " + svg_number(picture_width) + " " +
                    svg_number(height()) + "\" role=\"img\" aria-label=\"" +
                    html::escaped(panel.title) + "\">\n" + draw(panel) +
                    svg_text(frame_left + frame_width / 2, height() - 8, x_title(),
                             "class=\"quiet\" text-anchor=\"middle\"") +
                    "</svg>\n");
    return all;
  }

 private:
  double height() const {
    return frame_top + frame_height + below_frame + (is_slanted() ? slant_height : 0);
  }

  static PlotAxis x_axis(const PlotData& data) {
    if (!data.categories.empty()) return PlotAxis::of_categories(data.categories.size());
    std::vector<double> values;
    for (const PlotSeries& series : data.series)
      for (const PlotPoint& point : series.points) values.push_back(point.x);
    return PlotAxis::over(values);
  }

  using Value = std::function<std::optional<double>(const PlotPoint&)>;

  std::vector<double> values_of(const Value& value) const {
    std::vector<double> values;
    const auto take = [&](const PlotPoint& point) {
      if (const auto found = value(point)) values.push_back(*found);
    };
    std::for_each(data_.others.begin(), data_.others.end(), take);
    for (const PlotSeries& series : data_.series)
      std::for_each(series.points.begin(), series.points.end(), take);
    return values;
  }

  Panel panel(const std::string& title, const Value& value, const std::string& unit) const {
    return {title, value, PlotAxis::linear_from_zero(values_of(value)), unit};
  }

  std::vector<Panel> panels() const {
    const Value tokens = [](const PlotPoint& point) { return std::optional(point.tokens_per_s); };
    const Value efficiency = [](const PlotPoint& point) {
      return point.efficiency ? std::optional(100 * *point.efficiency) : std::nullopt;
    };
    Panel throughput = panel("Throughput, tokens/s", tokens, "");
    throughput.has_ideal = true;
    std::vector<double> rates = values_of(tokens);
    for (const PlotSeries& series : data_.series)
      if (has_ideal(series)) rates.push_back(ideal_at(series, series.points.back().x));
    throughput.axis = data_.x_counts_gpus && x_axis_.is_logarithmic()
                          ? PlotAxis::logarithmic(rates)
                          : PlotAxis::linear_from_zero(rates);
    return {
        throughput,
        values_of(efficiency).empty()
            ? panel(
                  "Iteration time",
                  [](const PlotPoint& point) { return std::optional(point.time / 1_s); }, " s")
            : panel("Scaling efficiency: tokens/s per GPU over the smallest cluster's", efficiency,
                    " %"),
        panel(
            "Model FLOPs utilisation (MFU)",
            [](const PlotPoint& point) { return std::optional(100 * point.mfu); }, " %"),
        panel(
            "Memory of the fullest GPU",
            [](const PlotPoint& point) { return std::optional(point.memory / 1_GiB); }, " GiB")};
  }

  double x_at(double x) const { return frame_left + frame_width * x_axis_.position(x); }

  /// Whether the names on the axis are too long to stand side by side.
  bool is_slanted() const {
    const double room =
        frame_width / static_cast<double>(std::max<std::size_t>(1, data_.categories.size()));
    return std::any_of(data_.categories.begin(), data_.categories.end(),
                       [&](const std::string& name) {
                         return static_cast<double>(name.size()) * letter_width > room;
                       });
  }

  std::string x_title() const {
    return data_.x_counts_gpus && x_axis_.is_logarithmic() ? "GPUs (logarithmic)" : data_.x_name;
  }

  std::string x_mark(double mark, double y) const {
    std::string text = data_.x_text(mark);
    if (!is_slanted())
      return svg_text(x_at(mark), y, text, "class=\"quiet\" text-anchor=\"middle\"");
    if (text.size() > longest_category) text = text.substr(0, longest_category - 3) + "...";
    return svg_text(x_at(mark) + 4, y - 4, text,
                    "class=\"quiet\" text-anchor=\"end\" transform=\"rotate(-35 " +
                        svg_number(x_at(mark) + 4) + " " + svg_number(y - 4) + ")\"");
  }

  std::string draw(const Panel& panel) const {
    std::string text = svg_text(frame_left, frame_top - 10, panel.title, "class=\"panel\"");
    for (const double mark : panel.axis.marks()) {
      text +=
          svg_line(frame_left, panel.at(mark), frame_left + frame_width, panel.at(mark), "grid");
      text += svg_text(frame_left - 9, panel.at(mark) + 4, mark_text(mark) + panel.unit,
                       "class=\"quiet\" text-anchor=\"end\"");
    }
    // From the right: the largest cluster is always named.
    const double least_between = is_slanted() ? least_between_slanted : least_between_marks;
    double last = frame_left + frame_width + least_between;
    const std::vector<double>& marks = x_axis_.marks();
    for (auto mark = marks.rbegin(); mark != marks.rend(); ++mark) {
      text += svg_line(x_at(*mark), frame_top, x_at(*mark), frame_top + frame_height, "grid");
      if (last - x_at(*mark) < least_between) continue;
      last = x_at(*mark);
      text += x_mark(*mark, frame_top + frame_height + 18);
    }
    text += cloud(panel);
    for (std::size_t i = 0; i < data_.series.size(); ++i) {
      const std::string colour = "s" + std::to_string(i);
      if (panel.has_ideal && has_ideal(data_.series[i]))
        text += ideal(panel, data_.series[i], colour);
      text += draw(panel, data_.series[i], colour);
    }
    return text + "<rect class=\"frame\" x=\"" + svg_number(frame_left) + "\" y=\"" +
           svg_number(frame_top) + "\" width=\"" + svg_number(frame_width) + "\" height=\"" +
           svg_number(frame_height) + "\"/>\n";
  }

  /// Whether the series shows how throughput grows with the cluster.
  static bool has_ideal(const PlotSeries& series) {
    return series.points.front().efficiency.has_value();
  }
  static double ideal_at(const PlotSeries& series, double gpus) {
    return series.points.front().tokens_per_s / series.points.front().x * gpus;
  }

  /// What the same tokens a second and GPU as on the series' smallest cluster would give.
  std::string ideal(const Panel& panel, const PlotSeries& series, const std::string& colour) const {
    const double first = series.points.front().x, last = series.points.back().x;
    constexpr int steps = 64;
    std::string path;
    for (int i = 0; i <= steps; ++i) {
      const double x = first + (last - first) * i / steps;
      path += svg_number(x_at(x)) + "," + svg_number(panel.at(ideal_at(series, x))) + " ";
    }
    return "<polyline class=\"ideal " + colour + "\" points=\"" + path + "\"/>\n";
  }

  /// The points that no series has, as dots.
  std::string cloud(const Panel& panel) const {
    std::string fitting, too_large;
    for (const PlotPoint& point : data_.others)
      if (const std::optional<double> value = panel.value(point))
        (point.fits ? fitting : too_large) +=
            "M" + svg_number(x_at(point.x)) + " " + svg_number(panel.at(*value)) + "h0";
    const auto path = [](const char* kind, const std::string& dots) {
      return dots.empty() ? std::string()
                          : "<path class=\"" + std::string(kind) + "\" d=\"" + dots + "\"/>\n";
    };
    return path("cloud", fitting) + path("cloud too-large", too_large);
  }

  std::string mark(const Panel& panel, const PlotPoint& point, double value,
                   const std::string& colour) const {
    return "<circle class=\"" + colour + (point.fits ? "" : " open") + "\" cx=\"" +
           svg_number(x_at(point.x)) + "\" cy=\"" + svg_number(panel.at(value)) +
           "\" r=\"3.6\"><title>" +
           html::escaped(data_.x_text(point.x) + ": " + significant_text(value, 4) + panel.unit) +
           "</title></circle>\n";
  }

  std::string draw(const Panel& panel, const PlotSeries& series, const std::string& colour) const {
    const bool is_line = data_.categories.empty() && series.points.size() > 1;
    std::string path, marks;
    for (const PlotPoint& point : series.points) {
      const std::optional<double> value = panel.value(point);
      if (!value) continue;
      path += svg_number(x_at(point.x)) + "," + svg_number(panel.at(*value)) + " ";
      if (!is_line || series.points.size() <= most_marks || !point.fits)
        marks += mark(panel, point, *value, colour);
    }
    return (is_line ? "<polyline class=\"line " + colour + "\" points=\"" + path + "\"/>\n" : "") +
           marks;
  }

  const PlotData& data_;
  PlotAxis x_axis_;
};

}  // namespace

std::vector<CurveKey> curve_keys(const PlotData& data) {
  const std::string dot = "<circle cx=\"15\" cy=\"0\" r=\"3.6\" class=\"";
  std::vector<CurveKey> keys;
  bool all_fit = true;
  for (std::size_t i = 0; i < data.series.size(); ++i) {
    const PlotSeries& series = data.series[i];
    const std::string colour = "s" + std::to_string(i);
    const bool is_line = data.categories.empty() && series.points.size() > 1;
    keys.push_back({(is_line ? "<path class=\"line " + colour + "\" d=\"M0 0H30\"/>" : "") + dot +
                        colour + "\"/>",
                    series.name.empty() ? "simulated" : series.name});
    all_fit = all_fit && std::all_of(series.points.begin(), series.points.end(),
                                     [](const PlotPoint& point) { return point.fits; });
  }
  const auto cloud = [](const char* kind) {
    return "<path class=\"" + std::string(kind) + "\" d=\"M9 0h0M15 0h0M21 0h0\"/>";
  };
  const auto is_large = [](const PlotPoint& point) { return !point.fits; };
  if (!data.others.empty()) keys.push_back({cloud("cloud"), "other points"});
  if (std::any_of(data.others.begin(), data.others.end(), is_large))
    keys.push_back({cloud("cloud too-large"), "others that do not fit in memory"});
  const bool any_scales = std::any_of(
      data.series.begin(), data.series.end(),
      [](const PlotSeries& series) { return series.points.front().efficiency.has_value(); });
  if (any_scales)
    keys.push_back({"<path class=\"ideal\" d=\"M0 0H30\"/>", "same tokens/s per GPU"});
  if (!all_fit) keys.push_back({dot + "none\"/>", "does not fit in memory"});
  return keys;
}

std::vector<std::string> sweep_pictures(const PlotData& data) { return SweepPlot(data).pictures(); }

std::string sweep_svg(const std::string& name, const std::vector<std::string>& columns,
                      const PartRows& rows) {
  const std::optional<PlotData> data = plot_data(rows, columns);
  return data ? SweepPlot(*data).file(name) : std::string{};
}

}  // namespace windtunnel
