#include "sweep/sweep_text.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/count_text.hpp"
#include "core/json_number.hpp"
#include "core/work_note.hpp"
#include "report/number_text.hpp"
#include "report/text_table.hpp"
#include "sweep/row.hpp"
#include "sweep/same_scenarios.hpp"
#include "sweep/sweep_front.hpp"

namespace windtunnel {
namespace {

constexpr std::size_t most_listed = 5;  ///< best points, and kinds of failures

double number_at(const JsonValue& row, const char* key) {
  return number_of(row.find(key)).value_or(0);
}

bool is_true(const JsonValue& row, const char* key) {
  const JsonValue* value = row.find(key);
  return value != nullptr && value->is_bool() && std::get<bool>(value->content);
}

/// What there is to say about all rows together.
struct Tally {
  std::size_t ok = 0, failed = 0, too_large = 0;
  std::vector<JsonValue> best;                               ///< that fit, by the sweep's objective
  std::vector<std::pair<std::string, std::size_t>> reasons;  ///< of failures, the commonest first
};

void count_reason(Tally& tally, const std::string& reason) {
  const auto found = std::find_if(tally.reasons.begin(), tally.reasons.end(),
                                  [&](const auto& each) { return each.first == reason; });
  if (found == tally.reasons.end())
    tally.reasons.emplace_back(reason, 1);
  else
    ++found->second;
}

Tally tally_of(const Sweep& sweep, const PartRows& rows) {
  Tally tally;
  const auto is_better = [&](const JsonValue& a, const JsonValue& b) {
    return penalty_of(sweep, a) < penalty_of(sweep, b);
  };
  for (const auto& [point, entry] : rows.by_point) {
    const std::optional<Row> row = parse_row(entry.row);
    if (!row) continue;
    if (!row->ok) {
      ++tally.failed;
      const JsonValue* failure = row->content.find("failure");
      count_reason(tally, failure != nullptr && failure->is_string() ? failure->string() : "");
      continue;
    }
    ++tally.ok;
    if (!is_true(row->content, "fits")) {
      ++tally.too_large;
      continue;
    }
    const auto place =
        std::upper_bound(tally.best.begin(), tally.best.end(), row->content, is_better);
    tally.best.insert(place, row->content);
    if (tally.best.size() > most_listed) tally.best.pop_back();
  }
  std::stable_sort(tally.reasons.begin(), tally.reasons.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return tally;
}

std::string plain(const JsonValue& value) {
  return value.is_string() ? value.string() : canonical_text(value);
}

std::string best_text(const Sweep& sweep, const Tally& tally) {
  std::vector<TextRow> lines{{"point"}};
  for (const std::string& column : sweep.points().columns()) lines[0].push_back(column);
  for (const char* figure : {"GPUs", "s/iteration", "tokens/s", "MFU %", "GiB"})
    lines[0].emplace_back(figure);
  for (const std::string& figure : sweep.asked_figures()) lines[0].push_back(figure);
  for (const JsonValue& row : tally.best) {
    lines.emplace_back();
    lines.back().push_back(plain(*row.find("point")));
    for (const std::string& column : sweep.points().columns()) {
      const JsonValue* value = row.find(column);
      lines.back().push_back(value == nullptr ? "" : text_for_message(JsonValue(plain(*value))));
      std::string& shown = lines.back().back();
      if (shown.size() >= 2) shown = shown.substr(1, shown.size() - 2);  // no quotes in a table
    }
    lines.back().push_back(plain(*row.find("gpus")));
    lines.back().push_back(fixed_text(number_at(row, "iteration_time_s"), 3));
    lines.back().push_back(grouped_text(number_at(row, "tokens_per_s")));
    lines.back().push_back(fixed_text(100 * number_at(row, "mfu"), 1));
    lines.back().push_back(fixed_text(Bytes{number_at(row, "memory_max_bytes")} / 1_GiB, 1));
    for (const std::string& figure : sweep.asked_figures()) {
      const JsonValue* value = row.find(figure);
      const std::optional<double> amount = number_of(value);
      constexpr int digits = 4;
      const bool is_money = figure == "cost";
      lines.back().push_back(amount && is_money ? grouped_text(*amount)
                             : amount           ? significant_text(*amount, digits)
                             : value != nullptr ? plain(*value)
                                                : "");
    }
  }
  return text_table("r", lines);
}

}  // namespace

const char* order_words(Objective objective) {
  switch (objective) {
    case Objective::time:
      return "Shortest iteration";
    case Objective::tokens_per_second:
      return "Most tokens a second";
    case Objective::cost_per_token:
      return "Least cost of a token";
    case Objective::energy_per_token:
      return "Least energy for a token";
    case Objective::days:
      return "Fewest days";
  }
  return "";
}

namespace {

std::string front_text(const std::vector<FrontPoint>& points) {
  std::string text;
  for (const FrontPoint& each : points)
    if (each.priced.on_front)
      text += "  point " + std::to_string(each.point) + ": " + each.priced.label + ": " +
              fixed_text(each.priced.days, 1) + " days, " + grouped_text(each.priced.cost) + "\n";
  return text.empty()
             ? ""
             : "\nDays against money: no other point takes fewer days and less money\n" + text;
}

JsonValue count(std::size_t number) { return JsonValue(static_cast<std::int64_t>(number)); }

}  // namespace

std::string same_text(const Sweep& sweep, const PartRows& rows) {
  return same_scenarios_text(same_scenarios(rows), sweep.points(), rows.by_point.size());
}

std::string sweep_text(const Sweep& sweep, const PartRows& rows,
                       const std::filesystem::path& directory) {
  const Tally tally = tally_of(sweep, rows);
  const std::size_t total = sweep.points().size();
  std::string text = sweep.name() + ": " + count_text(total, "point") + ", " +
                     std::to_string(tally.ok) + " simulated";
  if (tally.too_large > 0)
    text += " (" + std::to_string(tally.too_large) + " of them do not fit in memory)";
  if (tally.failed > 0) {
    text += ", " + std::to_string(tally.failed) + " failed (";
    for (const auto& [reason, times] : tally.reasons)
      text += (text.back() == '(' ? "" : ", ") + std::to_string(times) + " " + reason;
    text += ")";
  }
  const std::size_t left = total - rows.by_point.size();
  if (left > 0) text += ", " + std::to_string(left) + " left to do";
  text += "\n";
  if (const std::string same = same_text(sweep, rows); !same.empty())
    text += "warning: " + same + "\n";
  if (!tally.best.empty())
    text +=
        "\n" + std::string(order_words(sweep.choices().objective)) + "\n" + best_text(sweep, tally);
  text += front_text(front_of(rows, sweep.points().columns()));
  return text + "\nAll of it: " + (directory / "results.csv").string() + "\n";
}

std::string sweep_json(const Sweep& sweep, const PartRows& rows,
                       const std::filesystem::path& directory) {
  const Tally tally = tally_of(sweep, rows);
  const std::size_t total = sweep.points().size();
  JsonValue::Array same;
  for (const std::vector<std::size_t>& points : same_scenarios(rows)) {
    JsonValue::Array numbers;
    for (const std::size_t point : points) numbers.push_back(count(point));
    same.emplace_back(std::move(numbers));
  }
  JsonValue document{JsonValue::Object{}};
  document.set("schema", JsonValue(std::string("windtunnel/sweep-v1")));
  document.set("name", JsonValue(sweep.name()));
  document.set("sweep_hash", JsonValue(sweep.hash()));
  document.set("points", count(total));
  document.set("ok", count(tally.ok));
  document.set("failed", count(tally.failed));
  document.set("does_not_fit", count(tally.too_large));
  document.set("left", count(total - rows.by_point.size()));
  document.set("same_scenarios", JsonValue(std::move(same)));
  document.set("results", JsonValue((directory / "results.jsonl").string()));
  document.set("best", JsonValue(JsonValue::Array(tally.best)));
  if (const auto points = front_of(rows, sweep.points().columns()); !points.empty()) {
    JsonValue::Array front;
    for (const FrontPoint& each : points)
      if (each.priced.on_front) front.push_back(count(each.point));
    document.set("front", JsonValue(std::move(front)));
  }
  return pretty_text(document) + "\n";
}

namespace {

/// A point as it would be simulated.
struct PlannedPoint {
  std::string id;
  std::string obstacle;                ///< why it cannot be simulated; empty: it can
  std::optional<std::size_t> same_as;  ///< the first point with the same scenario
};

std::vector<PlannedPoint> planned_points(const Sweep& sweep) {
  std::vector<PlannedPoint> planned;
  std::map<std::string, std::size_t> first_of;
  for (std::size_t point = 0; point < sweep.points().size(); ++point) {
    count_done(point);
    PlannedPoint& each = planned.emplace_back();
    try {
      each.id = sweep.scenario(point).hash;
      const auto [first, is_new] = first_of.try_emplace(each.id, point);
      if (!is_new) each.same_as = first->second;
    } catch (const InputError& error) {
      each.id = id_of_unreadable(sweep, point);
      each.obstacle = error.problems().front().message;
    }
  }
  return planned;
}

template <class Condition>
std::string number_of_those(const std::vector<PlannedPoint>& planned, Condition condition) {
  return std::to_string(std::count_if(planned.begin(), planned.end(), condition));
}

}  // namespace

std::string points_text(const Sweep& sweep) {
  const SweepPoints& points = sweep.points();
  const std::vector<PlannedPoint> planned = planned_points(sweep);
  std::string lines;
  for (std::size_t point = 0; point < points.size(); ++point) {
    const PlannedPoint& each = planned[point];
    lines += std::to_string(point);
    for (const auto& [pointer, value] : points.values(point))
      lines += "  " + pointer + "=" + plain(value);
    if (!each.obstacle.empty()) lines += "  ✗ " + each.obstacle;
    if (each.same_as) lines += "  = point " + std::to_string(*each.same_as);
    lines += "\n";
  }
  const std::string repeated =
      number_of_those(planned, [](const PlannedPoint& each) { return each.same_as.has_value(); });
  return sweep.name() + ": " + count_text(points.size(), "point") + ": " +
         count_text(points.num_combinations(), "combination") + ", " +
         std::to_string(points.num_excluded()) + " excluded, " +
         std::to_string(points.num_included()) + " included; " +
         number_of_those(planned, [](const auto& each) { return !each.obstacle.empty(); }) +
         " cannot be simulated" +
         (repeated == "0" ? "" : ", " + repeated + " the same as another") + "\n" + lines;
}

std::string points_json(const Sweep& sweep) {
  const SweepPoints& points = sweep.points();
  const std::vector<PlannedPoint> planned = planned_points(sweep);
  JsonValue document{JsonValue::Object{}};
  document.set("schema", JsonValue(std::string("windtunnel/sweep-points-v1")));
  document.set("name", JsonValue(sweep.name()));
  document.set("combinations", count(points.num_combinations()));
  document.set("excluded", count(points.num_excluded()));
  document.set("included", count(points.num_included()));
  JsonValue::Array list;
  for (std::size_t point = 0; point < points.size(); ++point) {
    const PlannedPoint& each = planned[point];
    JsonValue entry{JsonValue::Object{}};
    entry.set("point", count(point));
    entry.set("id", JsonValue(each.id));
    for (const auto& [pointer, value] : points.values(point)) entry.set(pointer, value);
    if (!each.obstacle.empty()) entry.set("error", JsonValue(each.obstacle));
    if (each.same_as) entry.set("same_as", count(*each.same_as));
    list.push_back(std::move(entry));
  }
  document.set("points", JsonValue(std::move(list)));
  return pretty_text(document) + "\n";
}

}  // namespace windtunnel
