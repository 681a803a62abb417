#include "sweep/plot_data.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/json_value.hpp"
#include "core/text_list.hpp"
#include "report/number_text.hpp"
#include "scenario/key_table.hpp"
#include "sweep/points.hpp"
#include "sweep/row.hpp"
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

/// "microbatch (samples)", "nic_rate (Gbps)"
std::string axis_title(const ChosenAxis& axis, const std::vector<std::string>& columns) {
  const std::string label = axis_label(axis.column);
  return (label == axis.column ? short_name(axis.column, columns) : label) +
         (axis.unit.unit.empty() ? "" : " (" + axis.unit.unit + ")");
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
    std::string name = series_name(*row, telling);
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
  data.x_name = axis.column == "gpus" ? "GPUs" : axis_title(axis, columns);
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

}  // namespace windtunnel
