#include "sweep/sweep_plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "core/json_value.hpp"
#include "core/text_list.hpp"
#include "report/number_text.hpp"
#include "scenario/key_table.hpp"
#include "sweep/points.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// Rows that are drawn.
using Rows = std::vector<const Row*>;

std::string text_of(const JsonValue& row, const std::string& column) {
  return row.find(column) == nullptr ? "as it is" : text_at(row, column);
}

bool varies(const Rows& rows, const std::string& column) {
  return std::ranges::any_of(rows, [&](const Row* row) {
    return text_of(row->content, column) != text_of(rows.front()->content, column);
  });
}

/// Values whose largest is this many times their smallest would lie on the axis if it began at 0.
constexpr double far_apart = 100;
/// Beyond, the distance between two numbers need not be one.
constexpr double largest_drawn = 1e100;

/// A swept value as a number: 4, or "25 Gbps" with its unit.
std::optional<WrittenAmount> amount_at(const JsonValue& row, const std::string& column) {
  const JsonValue* value = row.find(column);
  if (const std::optional<double> number = number_of(value))
    return WrittenAmount{*number, {}, 1, {}};
  return value != nullptr && value->is_string() ? written_amount(value->string()) : std::nullopt;
}

/// The amount in the middle of those of the rows, whose unit suits most of them, if all have one, all of the same kind.
std::optional<WrittenAmount> middle_amount(const Rows& rows, const std::string& column) {
  std::vector<WrittenAmount> amounts;
  for (const Row* row : rows) {
    const std::optional<WrittenAmount> amount = amount_at(row->content, column);
    if (!amount || !(std::abs(amount->number) <= largest_drawn)) return std::nullopt;
    if (!amounts.empty() && amounts.front().kind != amount->kind) return std::nullopt;
    amounts.push_back(*amount);
  }
  std::ranges::sort(amounts, {}, [](const auto& each) { return each.number * each.factor; });
  return amounts[amounts.size() / 2];
}

Rows simulated(const PartRows& rows) {
  Rows found;
  for (const auto& [point, row] : rows.by_point)
    if (row.ok) found.push_back(&row);
  return found;
}

/// Keys that make a job larger, in the order in which they are tried as the x axis.
constexpr std::array size_pointers{"/nodes", "/parallel/data", "/parallel/pipeline",
                                   "/parallel/tensor"};
/// A key, apart from the sizes themselves, that may grow with the GPUs and leave the work of each the same.
constexpr const char* batch_pointer = "/training/global_batch";

bool is_size(const std::string& column) {
  return std::ranges::find(size_pointers, column) != size_pointers.end();
}

/// Values of the rows on the axis.
struct ChosenAxis {
  std::string column;
  /// Columns that may differ along a line: the one that makes x, and those that grow with the GPUs.
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

/// True if the column is the same number per GPU in all rows that differ only in size.
bool grows_with_gpus(const Rows& rows, const std::vector<std::string>& columns,
                     const std::string& column) {
  std::map<std::string, std::pair<double, double>> first;  // value, GPUs
  return std::ranges::all_of(rows, [&](const Row* row) {
    const std::optional<double> value = number_of(row->content.find(column));
    if (!value) return false;
    const std::string key = key_of(row->content, columns, [](const std::string& each) {
      return !is_size(each) && each != batch_pointer;
    });
    const double gpus = figure(row->content, "gpus");
    const auto& [known, known_gpus] = first.try_emplace(key, *value, gpus).first->second;
    return *value * known_gpus == known * gpus;
  });
}

/// True if two rows differ in size and in nothing else.
bool scales(const Rows& rows, const std::vector<std::string>& columns, const ChosenAxis& axis) {
  std::map<std::string, double> gpus;
  return std::ranges::any_of(rows, [&](const Row* row) {
    const auto key =
        key_of(row->content, columns, [&](const auto& each) { return !axis.is_along(each); });
    const double count = figure(row->content, "gpus");
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
  for (const Row* row : rows) {
    const std::string text = text_of(row->content, column);
    if (std::ranges::find(axis.categories, text) == axis.categories.end())
      axis.categories.push_back(text);
  }
  return axis;
}

ChosenAxis choose_axis(const Rows& rows, const std::vector<std::string>& columns) {
  if (std::ranges::all_of(rows,
                          [](const Row* row) { return row->content.find("label") != nullptr; })) {
    ChosenAxis axis = axis_of_names(rows, "label");
    axis.along = columns;
    return axis;
  }
  if (const std::optional<ChosenAxis> axis = gpu_axis(rows, columns)) return *axis;
  for (const std::string& column : columns)
    if (const auto middle = middle_amount(rows, column); middle && varies(rows, column))
      return {column, {column}, *middle};
  const auto varying = std::ranges::find_if(
      columns, [&](const std::string& column) { return varies(rows, column); });
  return axis_of_names(rows, varying == columns.end() ? columns.front() : *varying);
}

std::vector<PlotSeries> series_of(const Rows& rows, const std::vector<std::string>& columns,
                                  const ChosenAxis& axis) {
  std::vector<std::string> telling;
  for (const std::string& column : columns)
    if (!axis.is_along(column) && varies(rows, column)) telling.push_back(column);
  std::vector<PlotSeries> all;
  std::map<std::string, std::size_t> place_of;
  for (const Row* row : rows) {
    // "micro_batch 4, recompute full": what tells the row from those of other lines
    std::string name = listed(telling, [&](const std::string& column) {
      return short_name(column, telling) + " " + text_of(row->content, column);
    });
    const auto [place, is_new] = place_of.try_emplace(name, all.size());
    if (is_new) all.push_back({std::move(name), {}});
    all[place->second].points.push_back(
        {row, axis.position(row->content), figure(row->content, "tokens_per_s")});
  }
  for (PlotSeries& series : all) std::ranges::stable_sort(series.points, {}, &PlotPoint::x);
  return all;
}

bool is_better(const PlotPoint& a, const PlotPoint& b) {
  return a.fits() != b.fits() ? a.fits() : a.tokens_per_s > b.tokens_per_s;
}

const PlotPoint& best_point(const PlotSeries& series) {
  return *std::ranges::min_element(series.points, is_better);
}

bool has_efficiencies(const PlotData& data) {
  return std::ranges::any_of(data.series, [](const PlotSeries& series) {
    return series.points.front().efficiency.has_value();
  });
}

/// Series beyond these would have no colour in chart.css.
static_assert(most_series == 8);

using Ends = std::optional<std::pair<double, double>>;  ///< of an interval of 90 %

Ends ends_of_time(const PlotPoint& point, double) {
  return interval_of(point.row->content, time_interval_key);
}
Ends ends_of_rate(const PlotPoint& point, double rate) {
  const Ends times = interval_of(point.row->content, time_interval_key);
  if (!times || times->first <= 0) return std::nullopt;
  const double amount = rate * figure(point.row->content, "iteration_time_s");
  return std::pair(amount / times->second, amount / times->first);
}
Ends no_ends(const PlotPoint&, double) { return std::nullopt; }

/// One quantity of each point over the axis of the sweep.
struct Panel {
  const char* title;
  const char* unit;
  std::optional<double> (*value)(const PlotPoint& point);
  Ends (*interval)(const PlotPoint& point, double value);
  MarkText text;
  enum class Kind {
    plain,
    with_ideal,   ///< next to each line the throughput of its smallest cluster, scaled up
    of_one_size,  ///< left out where lines run over cluster sizes
  } kind = Kind::plain;
};

const std::array panels{
    Panel{"Speed-up over the baseline, in tokens/s", "",
          [](const PlotPoint& point) { return number_of(point.row->content.find(speedup_key)); },
          [](const PlotPoint& point, double) {
            return interval_of(point.row->content, speedup_interval_key);
          },
          number_mark},
    Panel{"Throughput, tokens/s", "",
          [](const PlotPoint& point) { return std::optional(point.tokens_per_s); }, ends_of_rate,
          number_mark, Panel::Kind::with_ideal},
    Panel{"Iteration time", " s",
          [](const PlotPoint& point) {
            return number_of(point.row->content.find("iteration_time_s"));
          },
          ends_of_time, seconds_mark, Panel::Kind::of_one_size},
    Panel{"Scaling efficiency over the smallest cluster", " %",
          [](const PlotPoint& point) {
            return point.efficiency ? std::optional(100 * *point.efficiency) : std::nullopt;
          },
          no_ends, percent_mark},
    Panel{"Model FLOPs utilisation (MFU)", " %",
          [](const PlotPoint& point) {
            return std::optional(100 * figure(point.row->content, "mfu"));
          },
          ends_of_rate, percent_mark},
    Panel{"Memory of the fullest GPU", " GiB",
          [](const PlotPoint& point) {
            return std::optional(Bytes{figure(point.row->content, "memory_max_bytes")} / 1_GiB);
          },
          no_ends,
          [](double mark, int digits, double) { return number_mark(mark, digits) + " GiB"; }},
};

/// Numbers run to the right and the quantity up; points with names stand below each other, their quantity to the right.
Chart chart_of(const PlotData& data, const Panel& panel) {
  const bool has_rows = !data.categories.empty();
  Chart chart{panel.title, has_rows ? Chart::Shape::marks : Chart::Shape::curves, {}, {}};
  std::vector<double> places, values;
  const auto add = [&](const PlotPoint& point, std::size_t series, std::vector<Chart::Point>& to) {
    const std::optional<double> value = panel.value(point);
    if (!value) return;
    values.push_back(*value);
    const std::string name = text_at(point.row->content, "label");
    Chart::Point dot{point.x,
                     *value,
                     (name.empty() ? data.x_text(point.x) : name) + ": " +
                         significant_text(*value, 4) + panel.unit,
                     "s" + std::to_string(series),
                     std::nullopt,
                     !point.fits()};
    if (const Ends ends = panel.interval(point, *value)) {
      values.insert(values.end(), {ends->first, ends->second});
      dot.title += ", 90 % interval " + significant_text(ends->first, 3) + " to " +
                   significant_text(ends->second, 3) + panel.unit;
      dot.error = {point.x, ends->first, point.x, ends->second};
    }
    if (has_rows) {  // series of the same name below each other, under the name
      const auto count = static_cast<double>(data.series.size());
      const double apart = std::min(5.0, 14.0 / count);  // of the 36 of a row
      const double y =
          point.x + (26 + apart * (static_cast<double>(series) - (count - 1) / 2)) / 36;
      std::tie(dot.x, dot.y) = std::pair(*value, y);
      if (dot.error) dot.error = {dot.error->y_low, y, dot.error->y_high, y};
    }
    to.push_back(std::move(dot));
  };
  for (const PlotPoint& point : data.others) add(point, 0, chart.cloud);
  for (std::size_t i = 0; i < data.series.size(); ++i) {
    const std::vector<PlotPoint>& points = data.series[i].points;
    for (const PlotPoint& point : points) {
      places.push_back(point.x);
      add(point, i, chart.points);
    }
    const PlotPoint &first = points.front(), &last = points.back();
    if (panel.kind != Panel::Kind::with_ideal || !first.efficiency) continue;
    // Ideal scaling: the tokens/s per GPU of the series' smallest cluster.
    const double ideal = first.tokens_per_s / first.x * last.x;
    chart.guides.push_back({first.x, first.tokens_per_s, last.x, ideal, "s" + std::to_string(i)});
    values.push_back(ideal);
  }
  if (chart.points.empty()) return chart;
  chart.x = axis_over(places);
  const auto [least, most] = std::ranges::minmax_element(values);
  const bool are_far_apart = *least > 0 && *most > far_apart * *least;
  chart.y = are_far_apart || (!chart.guides.empty() && chart.x.is_logarithmic)
                ? logarithmic_axis(values)
                : axis_from_zero(values);
  chart.y.text = panel.text;
  if (has_rows) {
    chart.x = std::exchange(chart.y, {});
    chart.rows = data.categories;
  } else {
    chart.x.text = number_mark;
    chart.x.title =
        data.x_name +
        (data.x_counts_gpus && chart.x.is_logarithmic ? ", on a logarithmic scale" : "");
  }
  chart.y.title = panel.title;
  return chart;
}

}  // namespace

std::string PlotData::x_text(double x) const {
  return categories.empty() ? number_mark(x, 4) : categories[static_cast<std::size_t>(x)];
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
      if (!point.fits()) continue;
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
  for (PlotSeries& series : data.series) {
    const PlotPoint smallest = series.points.front();
    if (!data.x_counts_gpus || series.points.back().x == smallest.x) continue;
    const double one = smallest.tokens_per_s / smallest.x;
    for (PlotPoint& point : series.points) point.efficiency = point.tokens_per_s / point.x / one;
  }
  if (data.series.size() <= most_series) return data;
  // Leaves the series with the best points, those with a line first; the points of the rest become dots.
  std::ranges::stable_sort(data.series, [](const auto& a, const auto& b) {
    const bool a_has_line = a.points.size() > 1, b_has_line = b.points.size() > 1;
    return a_has_line != b_has_line ? a_has_line : is_better(best_point(a), best_point(b));
  });
  for (std::size_t i = most_series; i < data.series.size(); ++i)
    data.others.insert(data.others.end(), data.series[i].points.begin(),
                       data.series[i].points.end());
  data.series.resize(most_series);
  return data;
}

std::vector<ChartKey> curve_keys(const PlotData& data) {
  const auto cloud = [](const std::string& kind) {
    return "<path class=\"cloud" + kind + "\" d=\"M9 0h0M15 0h0M21 0h0\"/>";
  };
  const auto is_large = [](const PlotPoint& point) { return !point.fits(); };
  std::vector<ChartKey> keys;
  bool any_large = false, any_interval = false;
  for (const PlotSeries& series : data.series) {
    const std::string kind = "s" + std::to_string(keys.size());
    const bool is_line = data.categories.empty() && series.points.size() > 1;
    keys.push_back({key_mark(kind, is_line), series.name.empty() ? "simulated" : series.name});
    any_large = any_large || std::ranges::any_of(series.points, is_large);
    any_interval = any_interval || std::ranges::any_of(series.points, [](const PlotPoint& point) {
                     return ends_of_time(point, 0).has_value();
                   });
  }
  if (!data.others.empty()) keys.push_back({cloud(""), "other points"});
  if (std::ranges::any_of(data.others, is_large))
    keys.push_back({cloud(" too-large"), "others that do not fit in memory"});
  if (has_efficiencies(data))
    keys.push_back({"<line class=\"ideal\" x2=\"30\"/>", "same tokens/s per GPU"});
  if (any_interval) keys.push_back({"<path class=\"interval\" d=\"M15 -7V7\"/>", "90 % interval"});
  if (any_large) keys.push_back({key_mark("hollow"), "does not fit in memory"});
  return keys;
}

std::vector<Chart> sweep_charts(const PlotData& data) {
  std::vector<Chart> charts;
  for (const Panel& panel : panels) {
    if (panel.kind == Panel::Kind::of_one_size && has_efficiencies(data)) continue;
    Chart chart = chart_of(data, panel);
    if (!chart.points.empty()) charts.push_back(std::move(chart));
  }
  return charts;
}

std::string sweep_svg(const std::string& name, const std::vector<std::string>& columns,
                      const PartRows& rows) {
  const std::optional<PlotData> data = plot_data(rows, columns);
  return data ? chart_sheet(name, "", sweep_charts(*data), curve_keys(*data)) : "";
}

}  // namespace windtunnel
