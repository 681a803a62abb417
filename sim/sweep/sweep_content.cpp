#include "sweep/sweep_content.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/json_number.hpp"
#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "sweep/points.hpp"

namespace windtunnel::detail {

double figure(const JsonValue& row, const char* key) {
  return number_of(row.find(key)).value_or(0);
}

std::string text_at(const JsonValue& object, const std::string& key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr) return "";
  return value->is_string() ? value->string() : canonical_text(*value);
}

bool fits(const Row& row) {
  const JsonValue* value = row.content.find("fits");
  return value != nullptr && value->is_bool() && std::get<bool>(value->content);
}

std::string whole(std::size_t count) { return grouped_text(static_cast<double>(count)); }

std::string point_number(std::size_t place, const char* key, const std::string& text,
                         const char* unit) {
  return html::of_data("sweep-points",
                       html::number("/" + std::to_string(place) + "/" + key, text, unit));
}

SweepContent::SweepContent(const Sweep& its_sweep, const PartRows& its_rows,
                           const SweepPageOptions& options)
    : sweep(its_sweep), rows(its_rows) {
  rank_rows();
  data = plot_data(rows, sweep.points().columns());
  explained = explain_points(sweep, points_to_explain(), options.limits);
}

void SweepContent::rank_rows() {
  for (const auto& [point, entry] : rows.by_point)
    if (std::optional<Row> row = parse_row(entry.row)) {
      if (!row->ok) ++num_failed;
      if (row->ok && fits(*row)) ++num_fitting;
      ranked.push_back(std::move(*row));
    }
  const auto key = [&](const Row& row) {
    return std::tuple(!row.ok, row.ok && !fits(row), penalty_of(sweep, row.content));
  };
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](const Row& a, const Row& b) { return key(a) < key(b); });
  if (ranked.size() > most_page_rows) ranked.resize(most_page_rows);
}

std::vector<std::size_t> SweepContent::points_to_explain() const {
  constexpr std::size_t most = 10;
  std::vector<std::size_t> points;
  if (data) {
    const std::vector<PlotPoint> fastest = fastest_points(*data);
    const std::size_t count = std::min(most, fastest.size());
    for (std::size_t i = 0; i < count; ++i)
      points.push_back(fastest[count == 1 ? 0 : i * (fastest.size() - 1) / (count - 1)].point);
  } else if (!ranked.empty() && ranked.front().ok) {
    points.push_back(ranked.front().point);
  }
  if (has_best() && std::find(points.begin(), points.end(), best().point) == points.end())
    points.push_back(best().point);
  return points;
}

const Row* SweepContent::row_of(std::size_t point) const {
  const auto found = std::find_if(ranked.begin(), ranked.end(),
                                  [&](const Row& row) { return row.point == point; });
  return found == ranked.end() ? nullptr : &*found;
}

std::string SweepContent::values_of(const JsonValue& row) const {
  const std::vector<std::string>& columns = sweep.points().columns();
  std::string text;
  for (const std::string& column : columns)
    if (row.find(column) != nullptr)
      text +=
          (text.empty() ? "" : " · ") + short_name(column, columns) + " " + text_at(row, column);
  return text;
}

}  // namespace windtunnel::detail
