#include "sweep/sweep_front.hpp"

#include <optional>
#include <utility>

#include "core/json_number.hpp"
#include "sweep/points.hpp"
#include "sweep/sweep_content.hpp"

namespace windtunnel {
namespace {

/// "nodes 128, platform dgx-h100"; the name of the point, where it sets one.
std::string label_of(const Row& row, const std::vector<std::string>& columns) {
  std::string label;
  for (const std::string& column : columns) {
    const JsonValue* value = row.content.find(column);
    if (value == nullptr) continue;
    if (column == "/name" && value->is_string()) return value->string();
    label += (label.empty() ? "" : ", ") + short_name(column, columns) + " " +
             (value->is_string() ? value->string() : canonical_text(*value));
  }
  return label;
}

}  // namespace

std::vector<FrontPoint> front_of(const PartRows& rows, const std::vector<std::string>& columns) {
  std::vector<FrontPoint> points;
  std::vector<PricedPoint> priced;
  for (const auto& [number, entry] : rows.by_point) {
    const std::optional<Row> row = parse_row(entry.row);
    if (!row || !row->ok || !detail::fits(*row)) continue;
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
