#include "sweep/plot_data.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/contracts.hpp"
#include "core/json_number.hpp"
#include "core/text_list.hpp"
#include "report/number_text.hpp"
#include "scenario/key_table.hpp"
#include "sweep/points.hpp"
#include "sweep/row.hpp"

namespace windtunnel {
namespace {

/// Values whose largest is so many times their smallest are told apart by a logarithmic axis only.
constexpr double far_apart = 6;
/// Free part of an axis at each end.
constexpr double margin = 0.04;
constexpr double marks_wanted = 5;
/// More values than these are too many to have a mark each.
constexpr std::size_t most_value_marks = 24;

/// The smallest of 1, 2, 2.5, 5 and 10 times a power of ten that is at least `value`.
double round_up(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0})
    if (factor * power >= value * (1 - 1e-12)) return factor * power;
  return 10 * power;
}

/// 1, 2 and 5 times the powers of ten between two logarithms.
std::vector<double> logarithmic_marks(double low, double high) {
  constexpr double rounding = 1e-9;
  std::vector<double> marks;
  for (int exponent = static_cast<int>(std::floor(low)); exponent <= high; ++exponent)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double mark = factor * std::pow(10.0, exponent);
      if (std::log10(mark) >= low - rounding && std::log10(mark) <= high + rounding)
        marks.push_back(mark);
    }
  return marks;
}

}  // namespace

PlotAxis PlotAxis::linear_from_zero(const std::vector<double>& values) {
  PlotAxis axis;
  const double most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  WT_EXPECT(std::isfinite(most));
  const double step = most > 0 ? round_up(most / marks_wanted) : 1;
  const double steps = std::max(1.0, std::ceil(most / step - 1e-9));  // 1e-9: for rounding
  for (int i = 0; i <= steps; ++i) axis.marks_.push_back(i * step);
  axis.high_ = steps * step;
  return axis;
}

PlotAxis PlotAxis::logarithmic(const std::vector<double>& values) {
  WT_EXPECT(!values.empty());
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  WT_EXPECT(*least > 0 && std::isfinite(*most));
  PlotAxis axis;
  axis.is_logarithmic_ = true;
  const double low = std::log10(*least), high = std::log10(*most);
  const double room = std::max(margin * (high - low), std::log10(1.1));
  axis.low_ = low - room;
  axis.high_ = high + room;
  axis.marks_ = logarithmic_marks(axis.low_, axis.high_);
  return axis;
}

PlotAxis PlotAxis::over(const std::vector<double>& values) {
  PlotAxis axis;
  axis.marks_ = values;
  std::sort(axis.marks_.begin(), axis.marks_.end());
  axis.marks_.erase(std::unique(axis.marks_.begin(), axis.marks_.end()), axis.marks_.end());
  const double least = axis.marks_.front(), most = axis.marks_.back();
  axis.is_logarithmic_ = least > 0 && most / least >= far_apart;
  const double low = axis.scaled(least), high = axis.scaled(most);
  const double room = high > low ? margin * (high - low) : 1;
  axis.low_ = low - room;
  axis.high_ = high + room;
  axis.least_ = least;
  axis.most_ = most;
  if (axis.marks_.size() > most_value_marks) axis.use_round_marks();
  return axis;
}

void PlotAxis::use_round_marks() {
  marks_.clear();
  if (is_logarithmic_) {
    marks_ = logarithmic_marks(std::log10(least_), std::log10(most_));
    return;
  }
  const double step = round_up((most_ - least_) / marks_wanted);
  const double first = std::ceil(least_ / step) * step;
  for (int i = 0; first + i * step <= most_ && i <= 2 * marks_wanted; ++i)
    marks_.push_back(first + i * step);
}

PlotAxis PlotAxis::of_categories(std::size_t count) {
  PlotAxis axis;
  for (std::size_t i = 0; i < count; ++i) axis.marks_.push_back(static_cast<double>(i));
  axis.low_ = -0.5;
  axis.high_ = static_cast<double>(count) - 0.5;
  axis.most_ = static_cast<double>(count) - 1;
  return axis;
}

double PlotAxis::scaled(double value) const { return is_logarithmic_ ? std::log10(value) : value; }

double PlotAxis::position(double value) const { return (scaled(value) - low_) / (high_ - low_); }

std::string mark_text(double value) {
  constexpr double million = 1e6, thousand = 1e3;
  if (value >= million) return significant_text(value / million, 3) + " M";
  return value >= thousand ? grouped_text(value) : significant_text(value, 3);
}

namespace {

std::string text_of(const JsonValue& row, const std::string& column) {
  return row.find(column) == nullptr ? "as it is" : text_at(row, column);
}

bool varies(const std::vector<JsonValue>& rows, const std::string& column) {
  return std::any_of(rows.begin(), rows.end(), [&](const JsonValue& row) {
    return text_of(row, column) != text_of(rows.front(), column);
  });
}

/// Beyond, the distance between two numbers need not be one.
constexpr double largest_drawn = 1e100;

bool is_number_everywhere(const std::vector<JsonValue>& rows, const std::string& column) {
  return std::all_of(rows.begin(), rows.end(), [&](const JsonValue& row) {
    const std::optional<double> number = number_of(row.find(column));
    return number && std::abs(*number) <= largest_drawn;
  });
}

std::vector<JsonValue> simulated(const PartRows& rows) {
  std::vector<JsonValue> found;
  for (const auto& [point, entry] : rows.by_point) {
    if (!entry.ok) continue;
    if (auto row = parse_row(entry.row)) found.push_back(std::move(row->content));
  }
  return found;
}

/// What makes a job larger, in the order in which a line runs along one of them.
constexpr std::array size_pointers{"/nodes", "/parallel/data", "/parallel/pipeline",
                                   "/parallel/tensor"};
/// What may grow with the GPUs and leave the work of each the same, beside the sizes themselves.
constexpr const char* batch_pointer = "/training/global_batch";

bool is_size(const std::string& column) {
  return std::find(size_pointers.begin(), size_pointers.end(), column) != size_pointers.end();
}

/// Where the rows stand on the axis.
struct ChosenAxis {
  std::string column;
  /// What may differ along a line: the column that makes x, and what grows with the GPUs.
  std::vector<std::string> along = {};
  bool is_number = true;
  std::vector<std::string> categories = {};

  double position(const JsonValue& row) const {
    if (is_number) return number_of(row.find(column)).value_or(0);
    const auto found = std::find(categories.begin(), categories.end(), text_of(row, column));
    return static_cast<double>(found - categories.begin());
  }
  bool is_along(const std::string& name) const {
    return std::find(along.begin(), along.end(), name) != along.end();
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
bool grows_with_gpus(const std::vector<JsonValue>& rows, const std::vector<std::string>& columns,
                     const std::string& column) {
  std::map<std::string, std::pair<double, double>> first;  // value, GPUs
  return std::all_of(rows.begin(), rows.end(), [&](const JsonValue& row) {
    const std::optional<double> value = number_of(row.find(column));
    if (!value) return false;
    const std::string key = key_of(row, columns, [](const std::string& each) {
      return !is_size(each) && each != batch_pointer;
    });
    const double gpus = figure(row, "gpus");
    const auto& [known, known_gpus] = first.try_emplace(key, *value, gpus).first->second;
    return *value * known_gpus == known * gpus;
  });
}

/// Whether some row has another that differs in size and in nothing else.
bool scales(const std::vector<JsonValue>& rows, const std::vector<std::string>& columns,
            const ChosenAxis& axis) {
  std::map<std::string, double> gpus;
  return std::any_of(rows.begin(), rows.end(), [&](const JsonValue& row) {
    const auto key = key_of(row, columns, [&](const auto& each) { return !axis.is_along(each); });
    const double count = figure(row, "gpus");
    return gpus.try_emplace(key, count).first->second != count;
  });
}

/// The axis of GPUs, where some size of the job can be told to make them more.
std::optional<ChosenAxis> gpu_axis(const std::vector<JsonValue>& rows,
                                   const std::vector<std::string>& columns) {
  std::vector<std::string> growing;
  for (const std::string& column : columns)
    if ((is_size(column) || column == batch_pointer) && varies(rows, column) &&
        grows_with_gpus(rows, columns, column))
      growing.push_back(column);
  for (const std::string size : size_pointers) {
    if (std::find(columns.begin(), columns.end(), size) == columns.end()) continue;
    ChosenAxis axis{"gpus", growing};
    if (!axis.is_along(size)) axis.along.push_back(size);
    if (scales(rows, columns, axis)) return axis;
  }
  return std::nullopt;
}

ChosenAxis choose_axis(const std::vector<JsonValue>& rows,
                       const std::vector<std::string>& columns) {
  if (const std::optional<ChosenAxis> axis = gpu_axis(rows, columns)) return *axis;
  for (const std::string& column : columns)
    if (varies(rows, column) && is_number_everywhere(rows, column)) return {column, {column}};
  const auto varying = std::find_if(columns.begin(), columns.end(), [&](const std::string& column) {
    return varies(rows, column);
  });
  const std::string& column = varying == columns.end() ? columns.front() : *varying;
  ChosenAxis axis{column, {column}, false};
  for (const JsonValue& row : rows) {
    const std::string text = text_of(row, column);
    if (std::find(axis.categories.begin(), axis.categories.end(), text) == axis.categories.end())
      axis.categories.push_back(text);
  }
  return axis;
}

/// "micro_batch 4, recompute full": what tells the row from those of other lines.
std::string series_name(const JsonValue& row, const std::vector<std::string>& telling) {
  return listed(telling, [&](const std::string& column) {
    return short_name(column, telling) + " " + text_of(row, column);
  });
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
  return point;
}

std::vector<PlotSeries> series_of(const std::vector<JsonValue>& rows,
                                  const std::vector<std::string>& columns, const ChosenAxis& axis) {
  std::vector<std::string> telling;
  for (const std::string& column : columns)
    if (!axis.is_along(column) && varies(rows, column)) telling.push_back(column);
  std::vector<PlotSeries> all;
  std::map<std::string, std::size_t> place_of;
  for (const JsonValue& row : rows) {
    std::string name = series_name(row, telling);
    const auto [place, is_new] = place_of.try_emplace(name, all.size());
    if (is_new) all.push_back({std::move(name), {}});
    all[place->second].points.push_back(point_of(row, axis));
  }
  for (PlotSeries& series : all)
    std::stable_sort(series.points.begin(), series.points.end(),
                     [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
  return all;
}

bool is_better(const PlotPoint& a, const PlotPoint& b) {
  return a.fits != b.fits ? a.fits : a.tokens_per_s > b.tokens_per_s;
}

const PlotPoint& best_point(const PlotSeries& series) {
  return *std::min_element(series.points.begin(), series.points.end(), is_better);
}

/// Leaves the series with the best points, those with a line first; the points of the rest become dots.
void leave_best_series(PlotData& data) {
  std::stable_sort(data.series.begin(), data.series.end(), [](const auto& a, const auto& b) {
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

/// "nodes 128, platform dgx-h100"; the name of the point, where it sets one.
std::string label_of(const Row& row, const std::vector<std::string>& columns) {
  std::string label;
  for (const std::string& column : columns) {
    if (row.content.find(column) == nullptr) continue;
    if (column == "/name") return text_at(row.content, column);
    label += (label.empty() ? "" : ", ") + short_name(column, columns) + " " +
             text_at(row.content, column);
  }
  return label;
}

}  // namespace

std::string PlotData::x_text(double x) const {
  return categories.empty() ? mark_text(x) : categories[static_cast<std::size_t>(x)];
}

std::vector<PlotPoint> fastest_points(const PlotData& data) {
  std::map<double, PlotPoint> best;
  const auto take = [&](const PlotPoint& point) {
    const auto [place, is_new] = best.try_emplace(point.x, point);
    if (!is_new && is_better(point, place->second)) place->second = point;
  };
  for (const PlotSeries& series : data.series)
    std::for_each(series.points.begin(), series.points.end(), take);
  std::for_each(data.others.begin(), data.others.end(), take);
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
  const std::vector<JsonValue> drawn = simulated(rows);
  if (drawn.size() < 2 || columns.empty()) return std::nullopt;
  const ChosenAxis axis = choose_axis(drawn, columns);
  PlotData data;
  data.x_counts_gpus = axis.column == "gpus";
  data.x_name = data.x_counts_gpus ? "GPUs" : axis_label(axis.column);
  data.categories = axis.categories;
  data.batch_grows = axis.is_along(batch_pointer);
  data.series = series_of(drawn, columns, axis);
  if (data.x_counts_gpus)
    for (PlotSeries& series : data.series) add_efficiencies(series);
  if (data.series.size() > most_series) leave_best_series(data);
  return data;
}

std::vector<FrontPoint> front_of(const PartRows& rows, const std::vector<std::string>& columns) {
  std::vector<FrontPoint> points;
  std::vector<PricedPoint> priced;
  for (const auto& [number, entry] : rows.by_point) {
    const std::optional<Row> row = parse_row(entry.row);
    if (!row || !row->ok || !fits(row->content)) continue;
    const auto days = number_of(row->content.find("days"));
    const auto cost = number_of(row->content.find("cost"));
    if (!days || !cost) continue;
    priced.push_back({label_of(*row, columns), *days, *cost});
    points.push_back({number, {}});
  }
  mark_pareto_front(priced);
  for (std::size_t i = 0; i < points.size(); ++i) points[i].priced = std::move(priced[i]);
  return points;
}

}  // namespace windtunnel
