#include "job/job_points.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/json_value.hpp"
#include "job/job_words.hpp"
#include "report/html_page.hpp"
#include "report/html_text.hpp"
#include "report/svg_text.hpp"

namespace windtunnel {
namespace {

using html::escaped;
using html::number;

bool counts(const JobPoint& point) { return point.result && point.fits && point.result->cost; }

bool beats(const JobPoint& one, const JobPoint& other) {
  const JobResult &a = *one.result, &b = *other.result;
  return a.days.median <= b.days.median && a.cost->median <= b.cost->median &&
         (a.days.median < b.days.median || a.cost->median < b.cost->median);
}

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

constexpr double left = 90, top = 24, chart_width = 700, chart_height = 260;

/// Points of days (right) against money (up), each from nought.
std::string chart(const std::vector<JobPoint>& points) {
  double most_days = 0, most_money = 0;
  for (const JobPoint& point : points) {
    if (!counts(point)) continue;
    most_days = std::max(most_days, point.result->days.high);
    most_money = std::max(most_money, point.result->cost->high);
  }
  if (most_days <= 0 || most_money <= 0) return "";
  const double bottom = top + chart_height;
  std::string svg;
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    svg += svg_text(left + chart_width * share, bottom + 20, amount_text(most_days * share),
                    "text-anchor=\"middle\"");
    svg += svg_text(left - 8, bottom - chart_height * share + 4, amount_text(most_money * share),
                    "text-anchor=\"end\"");
  }
  svg += "<path d=\"M" + svg_number(left) + " " + svg_number(top) + "V" + svg_number(bottom) + "H" +
         svg_number(left + chart_width) + "\" fill=\"none\" stroke=\"currentColor\"/>\n";
  for (const JobPoint& point : points) {
    if (!counts(point)) continue;
    const double x = left + chart_width * point.result->days.median / most_days;
    const double y = bottom - chart_height * point.result->cost->median / most_money;
    svg += "<circle cx=\"" + svg_number(x) + "\" cy=\"" + svg_number(y) + "\" r=\"6\" fill=\"" +
           (point.on_front ? "#1d7a46" : "#87919d") + "\"><title>" + escaped(point.values) +
           "</title></circle>\n" + svg_text(x + 10, y + 4, point.values, "font-size=\"12\"");
  }
  svg += svg_text(left + chart_width / 2, bottom + 42, "days; up: money; green: on the front",
                  "text-anchor=\"middle\"");
  return "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Days against "
         "money\"><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1080 350\" "
         "width=\"1080\" height=\"350\" fill=\"currentColor\" font-size=\"13\" role=\"img\" "
         "aria-label=\"Days against money\">\n" +
         svg + "</svg></div>\n";
}

JsonValue spread_json(const Spread& spread) {
  JsonValue json{JsonValue::Object{}};
  json.set("median", JsonValue(spread.median));
  json.set("p5", JsonValue(spread.low));
  json.set("p95", JsonValue(spread.high));
  return json;
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
  for (JobPoint& point : points)
    point.on_front =
        counts(point) && std::none_of(points.begin(), points.end(), [&](const JobPoint& other) {
          return counts(other) && beats(other, point);
        });
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
  JsonValue::Array list;
  for (const JobPoint& point : points) list.push_back(point_json(point));
  json.set("points", JsonValue(std::move(list)));
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
              html::section({"points", "Every point", chart(points) + html::table(table)});
  page.data = {{"report", job_points_json(points)}};
  page.footer = "windtunnel " WINDTUNNEL_VERSION " · windtunnel job --json prints the same numbers";
  return html_document(page);
}

}  // namespace windtunnel
