#include "job/job_points.hpp"

#include <algorithm>
#include <utility>

#include "core/json_build.hpp"
#include "core/json_value.hpp"
#include "job/job_words.hpp"
#include "report/html_page.hpp"
#include "report/html_text.hpp"
#include "report/pareto_front.hpp"

namespace windtunnel {
namespace {

using html::escaped;
using html::number;

bool counts(const JobPoint& point) { return point.result && point.fits && point.result->cost; }

std::string optional_text(const std::optional<Spread>& spread) {
  return spread ? amount_text(spread->median) : "";
}

/// What keeps a point from the front, or that it is on it.
std::string verdict(const JobPoint& point) {
  if (!point.result) return "not played";
  if (!point.fits) return "does not fit in memory";
  const std::string front = point.on_front ? "on the front" : "";
  if (point.result->job.block.plan != JobPlan::best) return front;
  return (front.empty() ? "" : front + "; ") + point.result->plan;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

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
  JsonValue json{JsonValue::Object{}};
  json.set("values", JsonValue(point.values));
  json.set("ok", JsonValue(point.result.has_value()));
  if (!point.result) {
    json.set("error", JsonValue(point.problem));
    return json;
  }
  const JobResult& result = *point.result;
  json.set("fits", JsonValue(point.fits));
  json.set("on_front", JsonValue(point.on_front));
  json.set("plan", JsonValue(result.plan));
  json.set("gpus", JsonValue(std::int64_t{result.job.gpus}));
  json.set("days", spread_json(result.days));
  json.set("goodput", spread_json(result.goodput));
  json.set("failures", spread_json(result.failures));
  if (result.cost) json.set("cost", spread_json(*result.cost));
  if (result.energy_mwh) json.set("energy_mwh", spread_json(*result.energy_mwh));
  return json;
}

}  // namespace

void mark_front(std::vector<JobPoint>& points) {
  std::vector<PricedPoint> marked = priced(points);
  mark_pareto_front(marked);
  auto next = marked.begin();
  for (JobPoint& point : points) point.on_front = counts(point) && (next++)->on_front;
}

std::string job_points_text(const std::vector<JobPoint>& points) {
  std::size_t widest = 0;
  for (const JobPoint& point : points) widest = std::max(widest, point.values.size());
  const int label = static_cast<int>(widest) + 2;
  constexpr int narrow = 10, wide = 14;
  std::string text = left_aligned("point", label) + right_aligned("GPUs", narrow) +
                     right_aligned("days", narrow) + right_aligned("goodput", narrow) +
                     right_aligned("failures", narrow) + right_aligned("cost", wide) +
                     right_aligned("MWh", narrow) + "\n";
  for (const JobPoint& point : points) {
    text += left_aligned(point.values, label);
    if (!point.result) {
      text += "  not played: " + first_line(point.problem) + "\n";
      continue;
    }
    const JobResult& result = *point.result;
    const std::string why = verdict(point);
    text += right_aligned(grouped_text(result.job.gpus), narrow) +
            right_aligned(amount_text(result.days.median), narrow) +
            right_aligned(percent_text(result.goodput.median), narrow) +
            right_aligned(grouped_text(result.failures.median), narrow) +
            right_aligned(optional_text(result.cost), wide) +
            right_aligned(optional_text(result.energy_mwh), narrow) +
            (why.empty() ? "" : "  " + why) + "\n";
  }
  if (std::any_of(points.begin(), points.end(), counts))
    text += "\nOn the front: no other point that fits takes fewer days and less money.\n";
  return text;
}

std::string job_points_json(const std::vector<JobPoint>& points) {
  JsonValue json{JsonValue::Object{}};
  json.set("schema", JsonValue(std::string("windtunnel/job-points-v1")));
  json.set("version", JsonValue(std::string(WINDTUNNEL_VERSION)));
  json.set("points", array_of(points, point_json));
  return pretty_text(json);
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

std::string job_points_page(const std::string& name, const std::vector<JobPoint>& points) {
  html::Table table{
      "Every point", {"point", "", "GPUs", "days", "goodput", "failures", "cost", "MWh"}, {}, 2};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const JobPoint& point = points[i];
    std::vector<std::string> row{escaped(point.values), escaped(verdict(point))};
    if (point.result) {
      const JobResult& result = *point.result;
      const std::string at = "/points/" + std::to_string(i) + "/";
      row.push_back(number(at + "gpus", grouped_text(result.job.gpus)));
      row.push_back(number(at + "days/median", amount_text(result.days.median)));
      row.push_back(number(at + "goodput/median", percent_text(result.goodput.median)));
      row.push_back(number(at + "failures/median", grouped_text(result.failures.median)));
      row.push_back(escaped(optional_text(result.cost)));
      row.push_back(escaped(optional_text(result.energy_mwh)));
    }
    row.resize(table.head.size());
    table.rows.push_back(std::move(row));
  }
  HtmlPage page;
  page.kind = "job";
  page.title = name;
  page.places = {{"points", "Points"}};
  page.body = "<header class=\"hero\">\n<div>\n<p class=\"kicker\">" + escaped(name) +
              "</p>\n<h1>Days against money</h1>\n</div>\n</header>\n" +
              html::section(
                  {"points", "Every point", days_money_chart(priced(points)) + html::table(table)});
  page.data = {{"report", job_points_json(points)}};
  page.footer = "windtunnel " WINDTUNNEL_VERSION " · windtunnel job --json prints the same numbers";
  return html_document(page);
}

}  // namespace windtunnel
