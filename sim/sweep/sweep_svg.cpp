#include "sweep/sweep_svg.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "report/svg_text.hpp"
#include "sweep/plot_axis.hpp"
#include "sweep/plot_data.hpp"

namespace windtunnel {
namespace {

// Everything in SVG user units.
constexpr double left = 92, top = 84, panel_width = 560, gap = 66;
constexpr double legend_left = left + panel_width + 32, width = legend_left + 250;
constexpr std::array panel_heights{250.0, 190.0, 150.0};
constexpr double least_between_marks = 42;

/// Paul Tol's "bright" scheme, darkened where white paper needs it; told apart by colour-blind readers.
constexpr std::array colours{"#33629b", "#d1495b", "#228833", "#b9770e",
                             "#1f8fb0", "#8e2c66", "#7c5e48", "#6a6acb"};
static_assert(colours.size() == most_series);

constexpr const char* style = R"(<style>
  text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif; fill: #1f2933 }
  .title { font-size: 18px; font-weight: 600 }
  .panel { font-weight: 600 }
  .quiet { fill: #52606d; font-size: 12px }
  .page { fill: #ffffff }
  .frame { fill: none; stroke: #7b8794 }
  .grid { stroke: #e1e6eb }
  .ideal { stroke: #7b8794; stroke-dasharray: 2 4; stroke-width: 1.4 }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round }
  .dashed { fill: none; stroke-width: 2; stroke-dasharray: 7 4; stroke-linejoin: round }
</style>
)";

/// One quantity that a panel shows of each point.
struct Curve {
  std::function<std::optional<double>(const PlotPoint&)> value;
  const char* line = "line";  ///< its style
};

struct Panel {
  std::string title;
  std::vector<Curve> curves;
  PlotAxis axis;
  std::string unit;  ///< behind the marks
  double y = 0, height = 0;

  double at(double value) const { return y + height * (1 - axis.position(value)); }
};

class SweepPlot {
 public:
  SweepPlot(std::string name, const PlotData& data)
      : name_(std::move(name)), data_(data), x_axis_(x_axis(data)) {}

  std::string svg() const {
    std::string body;
    double y = top;
    std::vector<Panel> all = panels();
    for (std::size_t i = 0; i < all.size(); ++i) {
      Panel& panel = all[i];
      panel.y = y;
      panel.height = panel_heights[i];
      body += draw(panel);
      y += panel.height + gap;
    }
    const double height = y - gap + 62;
    body += svg_text(left + panel_width / 2, y - gap + 42, x_title(), "text-anchor=\"middle\"");
    return head(height) + body + legend() + "</svg>\n";
  }

 private:
  static PlotAxis x_axis(const PlotData& data) {
    if (!data.categories.empty()) return PlotAxis::of_categories(data.categories.size());
    std::vector<double> values;
    for (const PlotSeries& series : data.series)
      for (const PlotPoint& point : series.points) values.push_back(point.x);
    return PlotAxis::over(values);
  }

  std::vector<double> values_of(const Curve& curve) const {
    std::vector<double> values;
    for (const PlotSeries& series : data_.series)
      for (const PlotPoint& point : series.points)
        if (const auto value = curve.value(point)) values.push_back(*value);
    return values;
  }

  std::vector<Panel> panels() const {
    const Curve tokens{[](const PlotPoint& point) { return std::optional(point.tokens_per_s); }};
    const Curve mfu{[](const PlotPoint& point) { return std::optional(100 * point.mfu); }};
    const Curve efficiency{[](const PlotPoint& point) {
                             return point.efficiency ? std::optional(100 * *point.efficiency)
                                                     : std::nullopt;
                           },
                           "dashed"};
    const Curve memory{[](const PlotPoint& point) { return std::optional(point.memory / 1_GiB); }};
    std::vector<double> shares = values_of(mfu);
    const std::vector<double> efficiencies = values_of(efficiency);
    shares.insert(shares.end(), efficiencies.begin(), efficiencies.end());
    const bool logs = data_.x_counts_gpus && x_axis_.is_logarithmic();
    std::vector<double> rates = values_of(tokens);
    if (smallest() != nullptr) rates.push_back(ideal_at(x_axis_.marks().back()));
    std::vector<Panel> panels;
    panels.push_back({"Throughput, tokens/s",
                      {tokens},
                      logs ? PlotAxis::logarithmic(rates) : PlotAxis::linear_from_zero(rates),
                      ""});
    if (efficiencies.empty())
      panels.push_back(
          {"Model FLOPs utilisation", {mfu}, PlotAxis::linear_from_zero(shares), " %"});
    else
      panels.push_back({"Scaling efficiency (dashed) and model FLOPs utilisation (solid)",
                        {mfu, efficiency},
                        PlotAxis::linear_from_zero(shares),
                        " %"});
    panels.push_back({"Memory of the fullest GPU",
                      {memory},
                      PlotAxis::linear_from_zero(values_of(memory)),
                      " GiB"});
    return panels;
  }

  double x_at(double x) const { return left + panel_width * x_axis_.position(x); }

  std::string x_title() const {
    return data_.x_counts_gpus && x_axis_.is_logarithmic() ? "GPUs (logarithmic)" : data_.x_name;
  }

  std::string x_text(double mark) const {
    if (data_.categories.empty()) return mark_text(mark);
    return data_.categories[static_cast<std::size_t>(mark)];
  }

  std::string draw(const Panel& panel) const {
    std::string text = svg_text(left, panel.y - 10, panel.title, "class=\"panel\"");
    for (const double mark : panel.axis.marks()) {
      text += svg_line(left, panel.at(mark), left + panel_width, panel.at(mark), "grid");
      text += svg_text(left - 9, panel.at(mark) + 4, mark_text(mark) + panel.unit,
                       "class=\"quiet\" text-anchor=\"end\"");
    }
    // From the right: the largest cluster is always named.
    double last = left + panel_width + least_between_marks;
    const std::vector<double>& marks = x_axis_.marks();
    for (auto mark = marks.rbegin(); mark != marks.rend(); ++mark) {
      text += svg_line(x_at(*mark), panel.y, x_at(*mark), panel.y + panel.height, "grid");
      if (last - x_at(*mark) < least_between_marks) continue;
      last = x_at(*mark);
      text += svg_text(last, panel.y + panel.height + 18, x_text(*mark),
                       "class=\"quiet\" text-anchor=\"middle\"");
    }
    if (panel.y == top) text += ideal(panel);
    for (std::size_t i = 0; i < data_.series.size(); ++i)
      for (const Curve& curve : panel.curves)
        text += draw(panel, curve, data_.series[i], colours[i]);
    return text + "<rect class=\"frame\" x=\"" + svg_number(left) + "\" y=\"" +
           svg_number(panel.y) + "\" width=\"" + svg_number(panel_width) + "\" height=\"" +
           svg_number(panel.height) + "\"/>\n";
  }

  /// The point that the ideal starts from: the fastest on the smallest cluster. None where x does not count GPUs.
  const PlotPoint* smallest() const {
    const PlotPoint* found = nullptr;
    if (!data_.x_counts_gpus) return found;
    for (const PlotSeries& series : data_.series) {
      const PlotPoint& first = series.points.front();
      if (found == nullptr || first.x < found->x ||
          (first.x == found->x && first.tokens_per_s > found->tokens_per_s))
        found = &first;
    }
    return found;
  }
  double ideal_at(double gpus) const { return smallest()->tokens_per_s / smallest()->x * gpus; }

  /// What the same tokens a second and GPU as on the smallest cluster would give.
  std::string ideal(const Panel& panel) const {
    if (smallest() == nullptr) return {};
    const double first = x_axis_.marks().front(), last = x_axis_.marks().back();
    constexpr int steps = 64;
    std::string path;
    for (int i = 0; i <= steps; ++i) {
      const double x = first + (last - first) * i / steps;
      path += svg_number(x_at(x)) + "," + svg_number(panel.at(ideal_at(x))) + " ";
    }
    return "<polyline class=\"ideal\" fill=\"none\" points=\"" + path + "\"/>\n";
  }

  std::string draw(const Panel& panel, const Curve& curve, const PlotSeries& series,
                   const std::string& colour) const {
    std::string path, marks;
    for (const PlotPoint& point : series.points) {
      const std::optional<double> value = curve.value(point);
      if (!value) continue;
      const std::string x = svg_number(x_at(point.x)), y = svg_number(panel.at(*value));
      path += x + "," + y + " ";
      marks += "<circle cx=\"" + x + "\" cy=\"" + y + "\" r=\"3.6\" fill=\"" +
               (point.fits ? colour : "#ffffff") + "\" stroke=\"" + colour +
               "\" stroke-width=\"1.6\"><title>" +
               html::escaped(x_text(point.x) + ": " + significant_text(*value, 4) + panel.unit) +
               "</title></circle>\n";
    }
    return "<polyline class=\"" + std::string(curve.line) + "\" stroke=\"" + colour +
           "\" points=\"" + path + "\"/>\n" + marks;
  }

  std::string head(double height) const {
    const std::string size =
        "width=\"" + svg_number(width) + "\" height=\"" + svg_number(height) + "\"";
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" " + size + " viewBox=\"0 0 " +
           svg_number(width) + " " + svg_number(height) + "\" role=\"img\">\n<title>" +
           html::escaped(name_) + "</title>\n" + style + "<rect class=\"page\" " + size + "/>\n" +
           svg_text(left, 36, name_, "class=\"title\"");
  }

  std::string legend() const {
    std::string text;
    double y = top + 8;
    const auto entry = [&](const std::string& sample, const std::string& name) {
      text += "<g transform=\"translate(" + svg_number(legend_left) + " " + svg_number(y) + ")\">" +
              sample + svg_text(40, 4, name, "") + "</g>\n";
      y += 24;
    };
    for (std::size_t i = 0; i < data_.series.size(); ++i) {
      const std::string colour = colours[i];
      const std::string name = data_.series[i].name.empty() ? "simulated" : data_.series[i].name;
      entry("<path class=\"line\" stroke=\"" + colour +
                "\" d=\"M0 0H30\"/><circle cx=\"15\" cy=\"0\" "
                "r=\"3.6\" fill=\"" +
                colour + "\"/>",
            name);
    }
    if (data_.x_counts_gpus) entry("<path class=\"ideal\" d=\"M0 0H30\"/>", "same tokens/s a GPU");
    const bool all_fit =
        std::all_of(data_.series.begin(), data_.series.end(), [](const PlotSeries& series) {
          return std::all_of(series.points.begin(), series.points.end(),
                             [](const PlotPoint& point) { return point.fits; });
        });
    if (!all_fit)
      entry(
          "<circle cx=\"15\" cy=\"0\" r=\"3.6\" fill=\"#ffffff\" stroke=\"#1f2933\" "
          "stroke-width=\"1.6\"/>",
          "does not fit in memory");
    return text;
  }

  std::string name_;
  const PlotData& data_;
  PlotAxis x_axis_;
};

}  // namespace

std::string sweep_svg(const std::string& name, const std::vector<std::string>& columns,
                      const PartRows& rows) {
  const std::optional<PlotData> data = plot_data(rows, columns);
  return data ? SweepPlot(name, *data).svg() : std::string{};
}

}  // namespace windtunnel
