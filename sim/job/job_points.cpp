#include "job/job_points.hpp"

#include <algorithm>
#include <utility>

#include "core/json_build.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/pareto_front.hpp"

namespace windtunnel {
namespace {

bool counts(const JobPoint& point) { return point.result && point.fits && point.result->cost; }

/// What keeps a point from the front, or that it is on it.
std::string verdict(const JobPoint& point) {
  if (!point.result) return "not played: " + point.problem.substr(0, point.problem.find('\n'));
  if (!point.fits) return "does not fit in memory";
  const std::string front = point.on_front ? "on the front" : "";
  if (point.result->job.block.plan != JobPlan::best) return front;
  return (front.empty() ? "" : front + "; ") + point.result->plan;
}

std::string csv_field(const std::string& text) {
  std::string field = "\"";
  for (const char each : text) field += each == '"' ? "\"\"" : std::string(1, each);
  return field + "\"";
}

std::string exact(double value) { return canonical_text(JsonValue(value)); }

std::vector<PricedPoint> priced(const std::vector<JobPoint>& points) {
  std::vector<PricedPoint> list;
  for (const JobPoint& point : points)
    if (counts(point))
      list.push_back(
          {point.values, point.result->days.median, point.result->cost->median, point.on_front});
  return list;
}

JsonValue point_json(const JobPoint& point) {
  if (!point.result)
    return object_of({{"values", point.values}, {"ok", false}, {"error", point.problem}});
  const JobResult& result = *point.result;
  const auto spread = [](const std::optional<Spread>& found) {
    return found ? std::optional(spread_json(*found)) : std::nullopt;
  };
  return object_of({{"values", point.values},
                    {"ok", true},
                    {"fits", point.fits},
                    {"on_front", point.on_front},
                    {"plan", result.plan},
                    {"gpus", result.job.gpus},
                    {"days", spread_json(result.days)},
                    {"goodput", spread_json(result.goodput)},
                    {"failures", spread_json(result.failures)},
                    {"cost", spread(result.cost)},
                    {"energy_mwh", spread(result.energy_mwh)}});
}

}  // namespace

void mark_front(std::vector<JobPoint>& points) {
  std::vector<PricedPoint> marked = priced(points);
  mark_pareto_front(marked);
  auto next = marked.begin();
  for (JobPoint& point : points) point.on_front = counts(point) && (next++)->on_front;
}

document::Document job_points_document(const std::string& name,
                                       const std::vector<JobPoint>& points) {
  const JsonValue data = object_of({{"schema", "windtunnel/job-points-v1"},
                                    {"version", WINDTUNNEL_VERSION},
                                    {"points", array_of(points, point_json)}});
  document::Table table{"lrrrrrrl",
                        {{"point", "GPUs", "days", "goodput", "failures", "cost", "MWh", ""}}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto at = [&](const char* key, std::string (*format)(double)) {
      return document::figure(data, "/points/" + std::to_string(i) + "/" + key, format);
    };
    table.rows.push_back({points[i].values, at("gpus", grouped_text),
                          at("days/median", amount_text), at("goodput/median", percent_text),
                          at("failures/median", grouped_text), at("cost/median", amount_text),
                          at("energy_mwh/median", amount_text), verdict(points[i])});
  }
  document::Section every{"points", "Points", "Every point", {std::move(table)}};
  if (const std::vector<PricedPoint> with_price = priced(points); !with_price.empty())
    every.parts = {"On the front: no other point that fits takes fewer days and less money.",
                   days_money_chart(with_price), every.parts.front()};
  return {data, "job", name, {"days against money"}, "", {}, {every}, "windtunnel job --json"};
}

std::string job_points_csv(const std::vector<JobPoint>& points) {
  std::string text = "point,ok,fits,on_front,gpus,days,goodput,failures,cost,energy_mwh\n";
  for (const JobPoint& point : points) {
    text += csv_field(point.values) + (point.result ? ",true," : ",false,");
    if (!point.result) {
      text += ",,,,,,,\n";
      continue;
    }
    const JobResult& result = *point.result;
    text += std::string(point.fits ? "true," : "false,") + (point.on_front ? "true," : "false,") +
            std::to_string(result.job.gpus) + "," + exact(result.days.median) + "," +
            exact(result.goodput.median) + "," + exact(result.failures.median) + "," +
            (result.cost ? exact(result.cost->median) : "") + "," +
            (result.energy_mwh ? exact(result.energy_mwh->median) : "") + "\n";
  }
  return text;
}

}  // namespace windtunnel
