#include "sweep/same_scenarios.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "sweep/row.hpp"

namespace windtunnel {
namespace {

constexpr std::size_t most_enumerated = 5;  ///< lists, and points or values of one

/// "0, 1 and 2", "0, 1, 2, 3, 4 and 91 more"
std::string enumerated(const std::vector<std::string>& words) {
  const std::size_t shown = words.size() > most_enumerated + 1 ? most_enumerated : words.size() - 1;
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + words[i];
  const std::size_t rest = words.size() - shown;
  return text + (shown == 0 ? "" : " and ") +
         (rest == 1 ? words.back() : std::to_string(rest) + " more");
}

std::string value_at(const PointValues& values, const std::string& pointer) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const auto& value) { return value.first == pointer; });
  if (found == values.end()) return "as in the file";
  return text_for_message(found->second);
}

/// "/parallel/virtual_pipeline (1, 2)": what the points set differently.
std::string differences(const std::vector<std::size_t>& same, const SweepPoints& points) {
  std::vector<std::string> columns;
  for (const std::string& column : points.columns()) {
    std::vector<std::string> values;
    for (const std::size_t point : same) {
      std::string value = value_at(points.values(point), column);
      if (std::find(values.begin(), values.end(), value) == values.end())
        values.push_back(std::move(value));
    }
    if (values.size() > 1) columns.push_back(column + " (" + enumerated(values) + ")");
  }
  return columns.empty() ? "how their values are written" : enumerated(columns);
}

}  // namespace

SameScenarios same_scenarios(const std::map<std::size_t, std::string>& ids) {
  std::map<std::string, std::vector<std::size_t>> by_id;
  for (const auto& [point, id] : ids) by_id[id].push_back(point);
  SameScenarios same;
  for (auto& [id, points] : by_id)
    if (points.size() > 1) same.push_back(std::move(points));
  std::sort(same.begin(), same.end());
  return same;
}

SameScenarios same_scenarios(const PartRows& rows) {
  std::map<std::size_t, std::string> ids;
  for (const auto& [point, entry] : rows.by_point) {
    const std::optional<Row> row = parse_row(entry.row);
    const JsonValue* id = row ? row->content.find("id") : nullptr;
    if (id != nullptr && id->is_string()) ids[point] = id->string();
  }
  return same_scenarios(ids);
}

std::string same_scenarios_text(const SameScenarios& same, const SweepPoints& points,
                                std::size_t num_known) {
  if (same.empty()) return {};
  std::size_t repeated = 0;
  for (const auto& list : same) repeated += list.size() - 1;
  const std::size_t different = num_known - repeated;
  std::string text =
      std::to_string(num_known) + " points are " +
      (different == 1 ? "one scenario" : std::to_string(different) + " different scenarios");
  for (std::size_t i = 0; i < std::min(most_enumerated, same.size()); ++i) {
    std::vector<std::string> numbers;
    for (const std::size_t point : same[i]) numbers.push_back(std::to_string(point));
    text += "\n  points " + enumerated(numbers) + " differ in " + differences(same[i], points) +
            ", which changes nothing";
  }
  if (same.size() > most_enumerated)
    text += "\n  and so on: " + std::to_string(same.size() - most_enumerated) + " more";
  return text;
}

}  // namespace windtunnel
