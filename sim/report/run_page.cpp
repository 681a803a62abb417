#include "report/run_page.hpp"

#include <utility>

#include "core/contracts.hpp"
#include "report/html_page.hpp"
#include "report/report_json.hpp"
#include "report/run_sections.hpp"
#include "report/why_section.hpp"

namespace windtunnel {

std::string run_page(const RunPage& page) {
  WT_EXPECT(page.explanation != nullptr);
  const Explanation& explanation = *page.explanation;
  const Report& report = explanation.report;
  const bool explains = !explanation.what_ifs.empty();
  const ShownDevices shown = shown_devices(page.played);
  HtmlPage html;
  html.kind = explains ? "explain" : "run";
  html.title = report.name;
  html.places = {{"time", "Time"},        {"why", "Why"},         {"timeline", "Timeline"},
                 {"stages", "Stages"},    {"network", "Network"}, {"inputs", "Inputs"},
                 {"scenario", "Scenario"}};
  if (explains) std::swap(html.places[0], html.places[1]);
  const std::string why = html::why_section(explanation), time = html::time_section(report);
  html.body = html::headline(report) + (explains ? why + time : time + why) +
              html::timeline_section(shown.text) + html::stage_section(report) +
              html::network_section(report) + html::input_section(report) +
              html::scenario_section(page.scenario);
  html.data = {
      {"report", without_wall_time(to_json(report))},
      {"explanation", explains ? without_wall_time(pretty_text(explanation_value(explanation)))
                               : canonical_text(path_value(explanation))},
      {"timeline-data", timeline_json(page.played, shown, explanation.path)}};
  html.footer = html::provenance(report);
  return html_document(html);
}

}  // namespace windtunnel
