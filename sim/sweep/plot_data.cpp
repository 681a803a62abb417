#include "sweep/plot_data.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/json_number.hpp"
#include "sweep/plot_axis.hpp"
#include "sweep/row.hpp"

namespace windtunnel {
namespace {

double figure(const JsonValue& row, const char* key) {
  return number_of(row.find(key)).value_or(0);
}

std::string text_of(const JsonValue& row, const std::string& column) {
  const JsonValue* value = row.find(column);
  if (value == nullptr) return "as it is";
  return value->is_string() ? value->string() : canonical_text(*value);
}

bool varies(const std::vector<JsonValue>& rows, const std::string& column) {
  return std::any_of(rows.begin(), rows.end(), [&](const JsonValue& row) {
    return text_of(row, column) != text_of(rows.front(), column);
  });
}

bool is_number_everywhere(const std::vector<JsonValue>& rows, const std::string& column) {
  return std::all_of(rows.begin(), rows.end(),
                     [&](const JsonValue& row) { return number_of(row.find(column)).has_value(); });
}

std::vector<JsonValue> simulated(const PartRows& rows) {
  std::vector<JsonValue> found;
  for (const auto& [point, entry] : rows.by_point) {
    if (!entry.ok) continue;
    if (auto row = parse_row(entry.row)) found.push_back(std::move(row->content));
  }
  return found;
}

/// Where the rows stand on the axis.
struct Axis {
  std::string column;
  bool is_number = true;
  std::vector<std::string> categories;

  double position(const JsonValue& row) const {
    if (is_number) return number_of(row.find(column)).value_or(0);
    const auto found = std::find(categories.begin(), categories.end(), text_of(row, column));
    return static_cast<double>(found - categories.begin());
  }
};

Axis choose_axis(const std::vector<JsonValue>& rows, const std::vector<std::string>& columns) {
  if (varies(rows, "gpus")) return {"gpus", true, {}};
  for (const std::string& column : columns)
    if (varies(rows, column) && is_number_everywhere(rows, column)) return {column, true, {}};
  Axis axis{columns.front(), false, {}};
  for (const std::string& column : columns) {
    if (!varies(rows, column)) continue;
    axis.column = column;
    break;
  }
  for (const JsonValue& row : rows) {
    const std::string text = text_of(row, axis.column);
    if (std::find(axis.categories.begin(), axis.categories.end(), text) == axis.categories.end())
      axis.categories.push_back(text);
  }
  return axis;
}

/// The columns whose values differ between rows at the same place of the axis.
std::vector<std::string> telling_columns(const std::vector<JsonValue>& rows,
                                         const std::vector<std::string>& columns,
                                         const Axis& axis) {
  std::vector<std::string> telling;
  for (const std::string& column : columns) {
    if (column == axis.column) continue;
    std::map<double, std::string> seen;
    for (const JsonValue& row : rows) {
      const auto [place, is_new] = seen.try_emplace(axis.position(row), text_of(row, column));
      if (is_new || place->second == text_of(row, column)) continue;
      telling.push_back(column);
      break;
    }
  }
  return telling;
}

PlotPoint point_of(const JsonValue& row, const Axis& axis) {
  PlotPoint point;
  point.point = static_cast<std::size_t>(figure(row, "point"));
  point.x = axis.position(row);
  point.time = Seconds{figure(row, "iteration_time_s")};
  point.tokens_per_s = figure(row, "tokens_per_s");
  point.mfu = figure(row, "mfu");
  point.memory = Bytes{figure(row, "memory_max_bytes")};
  const JsonValue* fits = row.find("fits");
  point.fits = fits == nullptr || !fits->is_bool() || std::get<bool>(fits->content);
  return point;
}

std::vector<PlotSeries> series_of(const std::vector<JsonValue>& rows, const Axis& axis,
                                  const std::vector<std::string>& telling) {
  std::vector<PlotSeries> all;
  for (const JsonValue& row : rows) {
    std::string name;
    for (const std::string& column : telling)
      name += (name.empty() ? "" : ", ") + column.substr(column.rfind('/') + 1) + " " +
              text_of(row, column);
    auto place = std::find_if(all.begin(), all.end(),
                              [&](const PlotSeries& series) { return series.name == name; });
    if (place == all.end()) place = all.insert(all.end(), PlotSeries{name, {}});
    place->points.push_back(point_of(row, axis));
  }
  return all;
}

/// At each x the point that fits with the most tokens a second; one that does not fit where none does.
PlotSeries fastest(const std::vector<PlotSeries>& all) {
  std::map<double, PlotPoint> best;
  for (const PlotSeries& series : all)
    for (const PlotPoint& point : series.points) {
      const auto [place, is_new] = best.try_emplace(point.x, point);
      PlotPoint& known = place->second;
      const bool is_better =
          point.fits != known.fits ? point.fits : point.tokens_per_s > known.tokens_per_s;
      if (!is_new && is_better) known = point;
    }
  PlotSeries series{"fastest of " + std::to_string(all.size()) + " that fits", {}};
  for (const auto& [x, point] : best) series.points.push_back(point);
  return series;
}

void add_efficiencies(PlotSeries& series) {
  if (series.points.size() < 2) return;
  const PlotPoint& smallest = series.points.front();
  const double one = smallest.tokens_per_s / smallest.x;
  for (PlotPoint& point : series.points) point.efficiency = point.tokens_per_s / point.x / one;
}

}  // namespace

std::string PlotData::x_text(double x) const {
  return categories.empty() ? mark_text(x) : categories[static_cast<std::size_t>(x)];
}

PlotSeries fastest_points(const PlotData& data) { return fastest(data.series); }

std::optional<PlotData> plot_data(const PartRows& rows, const std::vector<std::string>& columns) {
  const std::vector<JsonValue> drawn = simulated(rows);
  if (drawn.size() < 2 || columns.empty()) return std::nullopt;
  const Axis axis = choose_axis(drawn, columns);
  PlotData data;
  data.x_counts_gpus = axis.column == "gpus";
  data.x_name = data.x_counts_gpus ? "GPUs" : axis.column;
  data.categories = axis.categories;
  data.series = series_of(drawn, axis, telling_columns(drawn, columns, axis));
  if (data.series.size() > most_series) {
    for (const PlotSeries& series : data.series)
      data.others.insert(data.others.end(), series.points.begin(), series.points.end());
    data.series = {fastest(data.series)};
    std::set<std::size_t> drawn_points;
    for (const PlotPoint& point : data.series[0].points) drawn_points.insert(point.point);
    std::erase_if(data.others,
                  [&](const PlotPoint& point) { return drawn_points.count(point.point) > 0; });
  }
  for (PlotSeries& series : data.series) {
    std::stable_sort(series.points.begin(), series.points.end(),
                     [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
    if (data.x_counts_gpus) add_efficiencies(series);
  }
  return data;
}

}  // namespace windtunnel
