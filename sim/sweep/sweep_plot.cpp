#include "sweep/sweep_plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "core/json_value.hpp"
#include "core/text_list.hpp"
#include "core/utf8.hpp"
#include "report/chart.hpp"
#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "report/page_assets.hpp"
#include "scenario/key_table.hpp"
#include "sweep/points.hpp"
#include "sweep/results.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// Those that are drawn.
using Rows = std::vector<const JsonValue*>;

std::string text_of(const JsonValue& row, const std::string& column) {
  return row.find(column) == nullptr ? "as it is" : text_at(row, column);
}

bool varies(const Rows& rows, const std::string& column) {
  return std::ranges::any_of(rows, [&](const JsonValue* row) {
    return text_of(*row, column) != text_of(*rows.front(), column);
  });
}

/// Beyond, the distance between two numbers need not be one.
constexpr double largest_drawn = 1e100;

/// A swept value as a number: 4, or "25 Gbps" with its unit.
std::optional<WrittenAmount> amount_at(const JsonValue& row, const std::string& column) {
  const JsonValue* value = row.find(column);
  if (const std::optional<double> number = number_of(value))
    return WrittenAmount{*number, {}, 1, {}};
  return value != nullptr && value->is_string() ? written_amount(value->string()) : std::nullopt;
}

/// The largest of the amounts, if all rows have one, all of the same kind.
std::optional<WrittenAmount> largest_amount(const Rows& rows, const std::string& column) {
  std::optional<WrittenAmount> largest;
  for (const JsonValue* row : rows) {
    const std::optional<WrittenAmount> amount = amount_at(*row, column);
    if (!amount || !(std::abs(amount->number) <= largest_drawn)) return std::nullopt;
    if (largest && largest->kind != amount->kind) return std::nullopt;
    if (!largest || amount->number * amount->factor > largest->number * largest->factor)
      largest = amount;
  }
  return largest;
}

Rows simulated(const PartRows& rows) {
  Rows found;
  for (const auto& [point, row] : rows.by_point)
    if (row.ok) found.push_back(&row.content);
  return found;
}

/// What makes a job larger, in the order in which a line runs along one of them.
constexpr std::array size_pointers{"/nodes", "/parallel/data", "/parallel/pipeline",
                                   "/parallel/tensor"};
/// What may grow with the GPUs and leave the work of each the same, beside the sizes themselves.
constexpr const char* batch_pointer = "/training/global_batch";

bool is_size(const std::string& column) {
  return std::ranges::find(size_pointers, column) != size_pointers.end();
}

/// Where the rows stand on the axis.
struct ChosenAxis {
  std::string column;
  /// What may differ along a line: the column that makes x, and what grows with the GPUs.
  std::vector<std::string> along = {};
  WrittenAmount unit = {};  ///< of numbers with one
  bool is_number = true;
  std::vector<std::string> categories = {};

  double position(const JsonValue& row) const {
    if (is_number) {
      const WrittenAmount amount = amount_at(row, column).value_or(WrittenAmount{});
      // As it is written where it has the axis' unit: 0.1 of 1e9 times 1e-9 is not 0.1.
      return amount.factor == unit.factor ? amount.number
                                          : amount.number * amount.factor / unit.factor;
    }
    const auto found = std::ranges::find(categories, text_of(row, column));
    return static_cast<double>(found - categories.begin());
  }
  bool is_along(const std::string& name) const {
    return std::ranges::find(along, name) != along.end();
  }
};

/// Equal for rows with the same values of the columns that `counts` accepts.
template <class Counts>
std::string key_of(const JsonValue& row, const std::vector<std::string>& columns, Counts counts) {
  std::string key;
  for (const std::string& column : columns)
    if (counts(column)) key += text_of(row, column) + '\n';
  return key;
}

/// Whether the column is the same number per GPU in all rows that are equal but for their size.
bool grows_with_gpus(const Rows& rows, const std::vector<std::string>& columns,
                     const std::string& column) {
  std::map<std::string, std::pair<double, double>> first;  // value, GPUs
  return std::ranges::all_of(rows, [&](const JsonValue* row) {
    const std::optional<double> value = number_of(row->find(column));
    if (!value) return false;
    const std::string key = key_of(*row, columns, [](const std::string& each) {
      return !is_size(each) && each != batch_pointer;
    });
    const double gpus = figure(*row, "gpus");
    const auto& [known, known_gpus] = first.try_emplace(key, *value, gpus).first->second;
    return *value * known_gpus == known * gpus;
  });
}

/// Whether some row has another that differs in size and in nothing else.
bool scales(const Rows& rows, const std::vector<std::string>& columns, const ChosenAxis& axis) {
  std::map<std::string, double> gpus;
  return std::ranges::any_of(rows, [&](const JsonValue* row) {
    const auto key = key_of(*row, columns, [&](const auto& each) { return !axis.is_along(each); });
    const double count = figure(*row, "gpus");
    return gpus.try_emplace(key, count).first->second != count;
  });
}

/// The axis of GPUs, where some size of the job can be told to make them more.
std::optional<ChosenAxis> gpu_axis(const Rows& rows, const std::vector<std::string>& columns) {
  std::vector<std::string> growing;
  for (const std::string& column : columns)
    if ((is_size(column) || column == batch_pointer) && varies(rows, column) &&
        grows_with_gpus(rows, columns, column))
      growing.push_back(column);
  for (const std::string size : size_pointers) {
    if (std::ranges::find(columns, size) == columns.end()) continue;
    ChosenAxis axis{"gpus", growing};
    if (!axis.is_along(size)) axis.along.push_back(size);
    if (scales(rows, columns, axis)) return axis;
  }
  return std::nullopt;
}

/// A place for each different text of the column, in the order of the rows.
ChosenAxis axis_of_names(const Rows& rows, const std::string& column) {
  ChosenAxis axis{column, {column}, {}, false};
  for (const JsonValue* row : rows) {
    const std::string text = text_of(*row, column);
    if (std::ranges::find(axis.categories, text) == axis.categories.end())
      axis.categories.push_back(text);
  }
  return axis;
}

ChosenAxis choose_axis(const Rows& rows, const std::vector<std::string>& columns) {
  if (std::ranges::all_of(rows,
                          [](const JsonValue* row) { return row->find("label") != nullptr; })) {
    ChosenAxis axis = axis_of_names(rows, "label");
    axis.along = columns;
    return axis;
  }
  if (const std::optional<ChosenAxis> axis = gpu_axis(rows, columns)) return *axis;
  for (const std::string& column : columns)
    if (const auto largest = largest_amount(rows, column); largest && varies(rows, column))
      return {column, {column}, *largest};
  const auto varying = std::ranges::find_if(
      columns, [&](const std::string& column) { return varies(rows, column); });
  return axis_of_names(rows, varying == columns.end() ? columns.front() : *varying);
}

PlotPoint point_of(const JsonValue& row, const ChosenAxis& axis) {
  PlotPoint point;
  point.point = static_cast<std::size_t>(figure(row, "point"));
  point.x = axis.position(row);
  point.time = Seconds{figure(row, "iteration_time_s")};
  point.tokens_per_s = figure(row, "tokens_per_s");
  point.mfu = figure(row, "mfu");
  point.memory = Bytes{figure(row, "memory_max_bytes")};
  point.fits = fits(row);
  point.name = text_at(row, "label");
  point.interval = interval_of(row, time_interval_key);
  point.speedup = number_of(row.find(speedup_key));
  point.speedup_interval = interval_of(row, speedup_interval_key);
  return point;
}

std::vector<PlotSeries> series_of(const Rows& rows, const std::vector<std::string>& columns,
                                  const ChosenAxis& axis) {
  std::vector<std::string> telling;
  for (const std::string& column : columns)
    if (!axis.is_along(column) && varies(rows, column)) telling.push_back(column);
  std::vector<PlotSeries> all;
  std::map<std::string, std::size_t> place_of;
  for (const JsonValue* row : rows) {
    // "micro_batch 4, recompute full": what tells the row from those of other lines
    std::string name = listed(telling, [&](const std::string& column) {
      return short_name(column, telling) + " " + text_of(*row, column);
    });
    const auto [place, is_new] = place_of.try_emplace(name, all.size());
    if (is_new) all.push_back({std::move(name), {}});
    all[place->second].points.push_back(point_of(*row, axis));
  }
  for (PlotSeries& series : all) std::ranges::stable_sort(series.points, {}, &PlotPoint::x);
  return all;
}

bool is_better(const PlotPoint& a, const PlotPoint& b) {
  return a.fits != b.fits ? a.fits : a.tokens_per_s > b.tokens_per_s;
}

const PlotPoint& best_point(const PlotSeries& series) {
  return *std::ranges::min_element(series.points, is_better);
}

/// Leaves the series with the best points, those with a line first; the points of the rest become dots.
void leave_best_series(PlotData& data) {
  std::ranges::stable_sort(data.series, [](const auto& a, const auto& b) {
    const bool a_has_line = a.points.size() > 1, b_has_line = b.points.size() > 1;
    return a_has_line != b_has_line ? a_has_line : is_better(best_point(a), best_point(b));
  });
  for (std::size_t i = most_series; i < data.series.size(); ++i)
    data.others.insert(data.others.end(), data.series[i].points.begin(),
                       data.series[i].points.end());
  data.series.resize(most_series);
}

void add_efficiencies(PlotSeries& series) {
  const PlotPoint smallest = series.points.front();
  if (series.points.back().x == smallest.x) return;
  const double one = smallest.tokens_per_s / smallest.x;
  for (PlotPoint& point : series.points) point.efficiency = point.tokens_per_s / point.x / one;
}

// Everything in SVG user units: a picture, narrow enough for its letters to be read on a telephone, the frame of its curves, and the name and the
// key of a file that holds all pictures, which are larger there.
constexpr double picture_width = 420, frame_left = 58, frame_top = 30, frame_width = 350,
                 frame_height = 200, below_frame = 44;
constexpr double row_height = 36;  ///< of a named point
constexpr double name_height = 56, key_width = 282, key_height = 24, in_file = 4.0 / 3;

/// Series beyond these would have no colour in curves.css.
static_assert(most_series == 8);

/// Points of a series beyond which marks would be a second line.
constexpr std::size_t most_marks = 150;
constexpr double letter_width = 7;  ///< of the marks' font, at its largest

using Value = std::function<std::optional<double>(const PlotPoint&)>;

/// Factors between a quantity of a point and the ends of its 90 % interval, where it has one.
using Factors = std::optional<std::pair<double, double>>;

Factors factors_of_time(const PlotPoint& point) {
  if (!point.interval || point.interval->first <= 0) return std::nullopt;
  return std::pair(point.interval->first / (point.time / 1_s),
                   point.interval->second / (point.time / 1_s));
}
Factors factors_of_rate(const PlotPoint& point) {
  const Factors of_time = factors_of_time(point);
  return of_time ? Factors({1 / of_time->second, 1 / of_time->first}) : std::nullopt;
}
Factors factors_of_speedup(const PlotPoint& point) {
  if (!point.speedup_interval || !point.speedup || *point.speedup <= 0) return std::nullopt;
  return std::pair(point.speedup_interval->first / *point.speedup,
                   point.speedup_interval->second / *point.speedup);
}
Factors no_factors(const PlotPoint&) { return std::nullopt; }

/// One quantity of each point over the axis of the sweep.
struct Panel {
  std::string title;
  Factors (*interval)(const PlotPoint& point);
  Value value;
  std::string unit = {};   ///< behind the marks
  bool has_ideal = false;  ///< beside each line the throughput of its smallest cluster, scaled up
  ChartAxis axis = {};
};

/// Panels of the same points. Numbers run to the right and the quantities up; points with names stand below each other, their quantities to the right.
class SweepPlot {
 public:
  explicit SweepPlot(const PlotData& data) : data_(data), x_axis_(x_axis(data)) {}

  /// The pictures below each other in one file, their key beside them.
  std::string file(const std::string& name) const {
    std::string body;
    double y = name_height;
    for (const std::string& picture : pictures()) {
      body += "<svg y=\"" + svg_number(y) + "\" width=\"" + svg_number(in_file * picture_width) +
              "\" height=\"" + svg_number(in_file * height()) + "\">\n" + picture + "</svg>\n";
      y += in_file * height();
    }
    double key_top = name_height + frame_top;
    for (const CurveKey& key : curve_keys(data_)) {
      body += "<g transform=\"translate(" + svg_number(in_file * picture_width + 16) + " " +
              svg_number(key_top += key_height) + ")\">" + key.sample +
              svg_text(40, 4, key.name, "") + "</g>\n";
    }
    const std::string width = svg_number(in_file * picture_width + key_width),
                      size = "width=\"" + width + "\" height=\"" + svg_number(y) + "\"";
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" " + size + " viewBox=\"0 0 " + width + " " +
           svg_number(y) + "\" class=\"curves\" role=\"img\">\n<title>" + html::escaped(name) +
           "</title>\n<style>" + std::string(detail::curves_style.text) +
           "</style>\n<rect class=\"page\" " + size + "/>\n" +
           svg_text(in_file * 4, 36, name, "class=\"title\"") + body + "</svg>\n";
  }

  /// Each panel as a picture of its own.
  std::vector<std::string> pictures() const {
    std::vector<std::string> all;
    for (const Panel& panel : panels())
      all.push_back("<svg class=\"curves\" viewBox=\"0 0 " + svg_number(picture_width) + " " +
                    svg_number(height()) + "\" role=\"img\" aria-label=\"" +
                    html::escaped(panel.title) + "\">\n" + draw(panel) + "</svg>\n");
    return all;
  }

 private:
  struct Place {
    double x = 0, y = 0;
  };

  bool has_rows() const { return !data_.categories.empty(); }
  double inner_height() const {
    return has_rows() ? row_height * static_cast<double>(data_.categories.size()) + 6
                      : frame_height;
  }
  double bottom() const { return frame_top + inner_height(); }
  double height() const { return bottom() + (has_rows() ? below_frame / 2 : below_frame); }
  double left() const { return has_rows() ? 4 : frame_left; }
  double width() const { return frame_left + frame_width - left(); }

  static ChartAxis x_axis(const PlotData& data) {
    std::vector<double> values;
    for (const PlotSeries& series : data.series)
      for (const PlotPoint& point : series.points) values.push_back(point.x);
    return axis_over(values);
  }

  std::vector<double> values_of(const Value& value) const {
    std::vector<double> values;
    const auto take = [&](const PlotPoint& point) {
      if (const auto found = value(point)) values.push_back(*found);
    };
    std::ranges::for_each(data_.others, take);
    for (const PlotSeries& series : data_.series) std::ranges::for_each(series.points, take);
    return values;
  }

  std::vector<Panel> panels() const {
    const Value tokens = [](const PlotPoint& point) { return std::optional(point.tokens_per_s); };
    const Value efficiency = [](const PlotPoint& point) {
      return point.efficiency ? std::optional(100 * *point.efficiency) : std::nullopt;
    };
    const Value speedup = [](const PlotPoint& point) { return point.speedup; };
    const Value time = [](const PlotPoint& point) { return std::optional(point.time / 1_s); };
    const Value mfu = [](const PlotPoint& point) { return std::optional(100 * point.mfu); };
    const Value memory = [](const PlotPoint& point) { return std::optional(point.memory / 1_GiB); };
    std::vector<Panel> all;
    if (!values_of(speedup).empty())
      all.push_back({"Speed-up over the baseline, in tokens/s", factors_of_speedup, speedup});
    all.push_back({"Throughput, tokens/s", factors_of_rate, tokens, "", true});
    if (values_of(efficiency).empty())
      all.push_back({"Iteration time", factors_of_time, time, " s"});
    else
      all.push_back({"Scaling efficiency over the smallest cluster", no_factors, efficiency, " %"});
    all.push_back({"Model FLOPs utilisation (MFU)", factors_of_rate, mfu, " %"});
    all.push_back({"Memory of the fullest GPU", no_factors, memory, " GiB"});
    for (Panel& panel : all) panel.axis = axis_of(panel);
    return all;
  }

  /// Over all that the panel shows, the ends of intervals too.
  ChartAxis axis_of(const Panel& panel) const {
    std::vector<double> values = values_of(panel.value);
    for (const bool is_high : {false, true}) {
      const std::vector<double> ends = values_of([&](const PlotPoint& point) {
        const auto value = panel.value(point);
        const auto factors = panel.interval(point);
        return value && factors
                   ? std::optional(*value * (is_high ? factors->second : factors->first))
                   : std::nullopt;
      });
      values.insert(values.end(), ends.begin(), ends.end());
    }
    if (panel.has_ideal)
      for (const PlotSeries& series : data_.series)
        if (has_ideal(series)) values.push_back(ideal_at(series, series.points.back().x));
    return panel.has_ideal && data_.x_counts_gpus && x_axis_.is_logarithmic
               ? logarithmic_axis(values)
               : axis_from_zero(values);
  }

  /// Where a value of the panel stands at a place of the axis; series of the same name below each other.
  Place place(const Panel& panel, double x, double value, std::size_t series = 0) const {
    const double share = panel.axis.position(value);
    if (!has_rows())
      return {left() + width() * x_axis_.position(x), frame_top + inner_height() * (1 - share)};
    const double apart = std::min(5.0, 14.0 / static_cast<double>(data_.series.size()));
    return {left() + width() * share,
            frame_top + row_height * x + 26 +
                apart * (static_cast<double>(series) -
                         static_cast<double>(data_.series.size() - 1) / 2)};
  }

  std::string draw(const Panel& panel) const {
    std::string text = svg_text(4, 16, panel.title, "class=\"panel\"") +
                       (has_rows() ? rows(panel) : grid(panel)) + cloud(panel);
    for (std::size_t i = 0; i < data_.series.size(); ++i) {
      if (panel.has_ideal && has_ideal(data_.series[i])) text += ideal(panel, i);
      text += draw(panel, i);
    }
    return text + "<rect class=\"frame\" x=\"" + svg_number(left()) + "\" y=\"" +
           svg_number(frame_top) + "\" width=\"" + svg_number(width()) + "\" height=\"" +
           svg_number(inner_height()) + "\"/>\n";
  }

  std::vector<double> value_marks(const Panel& panel) const {
    return panel.axis.marks.empty()
               ? round_marks(panel.axis.low, panel.axis.high, panel.axis.is_logarithmic)
               : panel.axis.marks;
  }

  /// Lines and labels at the marks of both axes.
  std::string grid(const Panel& panel) const {
    std::string text;
    for (const double mark : value_marks(panel)) {
      const double y = place(panel, x_axis_.low, mark).y;
      text += svg_line(left(), y, left() + width(), y, "grid") +
              svg_text(left() - 6, y + 4, mark_text(mark) + panel.unit,
                       "class=\"quiet\" text-anchor=\"end\"");
    }
    std::vector<AxisLabel> labels;
    for (const double mark : x_axis_.marks) {
      const double x = left() + width() * x_axis_.position(mark);
      text += svg_line(x, frame_top, x, bottom(), "grid");
      labels.push_back({mark, x, data_.x_text(mark)});
    }
    return text + labels_below(labels) +
           svg_text(left() + width() / 2, height() - 8,
                    data_.x_name + (data_.x_counts_gpus && x_axis_.is_logarithmic
                                        ? ", on a logarithmic scale"
                                        : ""),
                    "class=\"quiet\" text-anchor=\"middle\"");
  }

  /// The name of each row above its points.
  std::string rows(const Panel& panel) const {
    std::string text;
    std::vector<AxisLabel> labels;
    for (const double mark : value_marks(panel)) {
      const double x = place(panel, 0, mark).x;
      text += svg_line(x, frame_top, x, bottom(), "grid");
      labels.push_back({mark, x, mark_text(mark) + panel.unit});
    }
    for (std::size_t i = 0; i < data_.categories.size(); ++i) {
      const double y = frame_top + row_height * static_cast<double>(i);
      if (i > 0) text += svg_line(left(), y, left() + width(), y, "grid");
      text += svg_text(left() + 6, y + 14, data_.categories[i], "class=\"name\"");
    }
    return text + labels_below(labels);
  }

  /// Those that fit, the outer ones within the picture.
  std::string labels_below(const std::vector<AxisLabel>& labels) const {
    std::string text;
    for (const AxisLabel& label : labels_that_fit(labels, letter_width)) {
      const double half = letter_width * utf8_count(label.text) / 2;
      text += svg_text(std::clamp(label.place, half, picture_width - half), bottom() + 17,
                       label.text, "class=\"quiet\" text-anchor=\"middle\"");
    }
    return text;
  }

  /// Whether the series shows how throughput grows with the cluster.
  static bool has_ideal(const PlotSeries& series) {
    return series.points.front().efficiency.has_value();
  }
  static double ideal_at(const PlotSeries& series, double gpus) {
    return series.points.front().tokens_per_s / series.points.front().x * gpus;
  }

  static std::string coordinates(const Place& place) {
    return svg_number(place.x) + "," + svg_number(place.y) + " ";
  }

  /// What the same tokens a second and GPU as on the series' smallest cluster would give.
  std::string ideal(const Panel& panel, std::size_t index) const {
    const PlotSeries& series = data_.series[index];
    const double first = series.points.front().x, last = series.points.back().x;
    constexpr int steps = 64;
    std::string path;
    for (int i = 0; i <= steps; ++i) {
      const double x = first + (last - first) * i / steps;
      path += coordinates(place(panel, x, ideal_at(series, x)));
    }
    return "<polyline class=\"ideal s" + std::to_string(index) + "\" points=\"" + path + "\"/>\n";
  }

  /// The points that no series has, as dots.
  std::string cloud(const Panel& panel) const {
    std::string fitting, too_large;
    for (const PlotPoint& point : data_.others)
      if (const std::optional<double> value = panel.value(point)) {
        const Place at = place(panel, point.x, *value);
        (point.fits ? fitting : too_large) +=
            "M" + svg_number(at.x) + " " + svg_number(at.y) + "h0";
      }
    const auto path = [](const char* kind, const std::string& dots) {
      return dots.empty() ? std::string()
                          : "<path class=\"" + std::string(kind) + "\" d=\"" + dots + "\"/>\n";
    };
    return path("cloud", fitting) + path("cloud too-large", too_large);
  }

  /// A point, and its interval where the quantity has one.
  std::string mark(const Panel& panel, const PlotPoint& point, double value,
                   std::size_t series) const {
    const std::string colour = "s" + std::to_string(series);
    std::string bar, words = (point.name.empty() ? data_.x_text(point.x) : point.name) + ": " +
                             significant_text(value, 4) + panel.unit;
    if (const auto factors = panel.interval(point)) {
      const double from = value * factors->first, to = value * factors->second;
      const Place low = place(panel, point.x, from, series),
                  high = place(panel, point.x, to, series);
      bar = svg_line(low.x, low.y, high.x, high.y, "interval " + colour);
      words += ", 90 % interval " + significant_text(from, 3) + " to " + significant_text(to, 3) +
               panel.unit;
    }
    const Place at = place(panel, point.x, value, series);
    return bar + "<circle class=\"" + colour + (point.fits ? "" : " open") + "\" cx=\"" +
           svg_number(at.x) + "\" cy=\"" + svg_number(at.y) + "\" r=\"3.4\"><title>" +
           html::escaped(words) + "</title></circle>\n";
  }

  std::string draw(const Panel& panel, std::size_t index) const {
    const PlotSeries& series = data_.series[index];
    const bool is_line = !has_rows() && series.points.size() > 1;
    std::string path, marks;
    for (const PlotPoint& point : series.points) {
      const std::optional<double> value = panel.value(point);
      if (!value) continue;
      path += coordinates(place(panel, point.x, *value, index));
      if (!is_line || series.points.size() <= most_marks || !point.fits)
        marks += mark(panel, point, *value, index);
    }
    return (is_line ? "<polyline class=\"line s" + std::to_string(index) + "\" points=\"" + path +
                          "\"/>\n"
                    : "") +
           marks;
  }

  const PlotData& data_;
  ChartAxis x_axis_;
};

}  // namespace

std::string mark_text(double value) {
  constexpr double million = 1e6, thousand = 1e3;
  if (value >= million) return significant_text(value / million, 3) + " M";
  return value >= thousand ? grouped_text(value) : significant_text(value, 3);
}

std::string PlotData::x_text(double x) const {
  return categories.empty() ? mark_text(x) : categories[static_cast<std::size_t>(x)];
}

std::vector<PlotPoint> fastest_points(const PlotData& data) {
  std::map<double, PlotPoint> best;
  const auto take = [&](const PlotPoint& point) {
    const auto [place, is_new] = best.try_emplace(point.x, point);
    if (!is_new && is_better(point, place->second)) place->second = point;
  };
  for (const PlotSeries& series : data.series) std::ranges::for_each(series.points, take);
  std::ranges::for_each(data.others, take);
  std::vector<PlotPoint> points;
  for (const auto& [x, point] : best) points.push_back(point);
  return points;
}

std::optional<Scaling> scaling_of(const PlotData& data) {
  std::optional<Scaling> found;
  if (!data.x_counts_gpus) return found;
  for (const PlotSeries& series : data.series) {
    Scaling scaling{&series};
    for (const PlotPoint& point : series.points) {
      if (!point.fits) continue;
      if (scaling.smallest == nullptr) scaling.smallest = &point;
      scaling.largest = &point;
    }
    if (scaling.smallest == nullptr || scaling.smallest->x == scaling.largest->x) continue;
    if (!found || is_better(best_point(series), best_point(*found->series))) found = scaling;
  }
  return found;
}

std::optional<PlotData> plot_data(const PartRows& rows, const std::vector<std::string>& columns) {
  const Rows drawn = simulated(rows);
  if (drawn.size() < 2 || columns.empty()) return std::nullopt;
  const ChosenAxis axis = choose_axis(drawn, columns);
  PlotData data;
  data.x_counts_gpus = axis.column == "gpus";
  // "microbatch (samples)", "nic_rate (Gbps)"
  const std::string label = axis_label(axis.column);
  data.x_name = axis.column == "gpus"
                    ? "GPUs"
                    : (label == axis.column ? short_name(axis.column, columns) : label) +
                          (axis.unit.unit.empty() ? "" : " (" + axis.unit.unit + ")");
  data.categories = axis.categories;
  data.batch_grows = data.x_counts_gpus && axis.is_along(batch_pointer);
  data.series = series_of(drawn, columns, axis);
  if (data.x_counts_gpus)
    for (PlotSeries& series : data.series) add_efficiencies(series);
  if (data.series.size() > most_series) leave_best_series(data);
  return data;
}

std::vector<FrontPoint> front_of(const PartRows& rows, const std::vector<std::string>& columns) {
  std::vector<FrontPoint> points;
  std::vector<PricedPoint> priced;
  for (const auto& [number, row] : rows.by_point) {
    if (!row.ok || !fits(row.content)) continue;
    const auto days = number_of(row.content.find("days"));
    const auto cost = number_of(row.content.find("cost"));
    if (!days || !cost) continue;
    priced.push_back({point_name(row.content, columns), *days, *cost});
    points.push_back({number, {}});
  }
  mark_pareto_front(priced);
  for (std::size_t i = 0; i < points.size(); ++i) points[i].priced = std::move(priced[i]);
  return points;
}

std::vector<CurveKey> curve_keys(const PlotData& data) {
  const std::string dot = "<circle cx=\"15\" cy=\"0\" r=\"3.6\" class=\"";
  std::vector<CurveKey> keys;
  bool all_fit = true, any_interval = false;
  for (std::size_t i = 0; i < data.series.size(); ++i) {
    const PlotSeries& series = data.series[i];
    const std::string colour = "s" + std::to_string(i);
    const bool is_line = data.categories.empty() && series.points.size() > 1;
    keys.push_back({(is_line ? "<path class=\"line " + colour + "\" d=\"M0 0H30\"/>" : "") + dot +
                        colour + "\"/>",
                    series.name.empty() ? "simulated" : series.name});
    all_fit = all_fit && std::ranges::all_of(series.points, &PlotPoint::fits);
    any_interval = any_interval || std::ranges::any_of(series.points, [](const PlotPoint& point) {
                     return point.interval.has_value();
                   });
  }
  const auto cloud = [](const char* kind) {
    return "<path class=\"" + std::string(kind) + "\" d=\"M9 0h0M15 0h0M21 0h0\"/>";
  };
  const auto is_large = [](const PlotPoint& point) { return !point.fits; };
  if (!data.others.empty()) keys.push_back({cloud("cloud"), "other points"});
  if (std::ranges::any_of(data.others, is_large))
    keys.push_back({cloud("cloud too-large"), "others that do not fit in memory"});
  const bool any_scales = std::ranges::any_of(data.series, [](const PlotSeries& series) {
    return series.points.front().efficiency.has_value();
  });
  if (any_scales)
    keys.push_back({"<path class=\"ideal\" d=\"M0 0H30\"/>", "same tokens/s per GPU"});
  if (any_interval) keys.push_back({"<path class=\"interval\" d=\"M15 -7V7\"/>", "90 % interval"});
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
