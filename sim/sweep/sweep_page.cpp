#include "sweep/sweep_page.hpp"

#include "core/json_build.hpp"
#include "report/html_page.hpp"
#include "report/html_text.hpp"
#include "sweep/sweep_content.hpp"
#include "sweep/sweep_text.hpp"

namespace windtunnel {
namespace {

using detail::SweepContent;
using html::escaped;

std::string points_json_text(const SweepContent& page) {
  std::string text;
  for (const Row& row : page.ranked)
    text += (text.empty() ? "[" : ",\n") + page.rows.by_point.at(row.point).row;
  return (text.empty() ? "[" : text) + "]";
}

std::string explained_json(const SweepContent& page) {
  return canonical_text(array_of(page.explained, [&](const ExplainedPoint& each) {
    JsonValue object(JsonValue::Object{});
    object.set("point", JsonValue(static_cast<std::int64_t>(each.point)));
    for (const char* key : {"iteration_time_s", "breakdown_s"})
      object.set(key, *each.report.find(key));
    return object;
  }));
}

}  // namespace

std::string sweep_page(const Sweep& sweep, const PartRows& rows, const SweepPageOptions& options) {
  const SweepContent content(sweep, rows, options);
  HtmlPage page;
  page.kind = "sweep";
  page.title = sweep.name();
  page.body = headline(content) + curves(content) + time_section(content) + point_section(content) +
              failure_section(content) + input_section(content) + scenario_section(content);
  page.places = {{"curves", "Curves"}};
  if (!content.explained.empty()) page.places.push_back({"time", "Time"});
  page.places.push_back({"points", "Points"});
  if (content.num_failed > 0) page.places.push_back({"failed", "Failed"});
  page.places.push_back({"inputs", "Inputs"});
  page.places.push_back({"scenario", "Scenario"});
  page.data = {{"report", sweep_json(sweep, rows, options.directory)},
               {"sweep-points", points_json_text(content)},
               {"explained", explained_json(content)}};
  page.footer = escaped(options.version) + " · sweep " + escaped(sweep.hash()) +
                " · the same numbers: <code>windtunnel sweep --json</code> and " +
                escaped((options.directory / "results.jsonl").string());
  return html_document(page);
}

}  // namespace windtunnel
