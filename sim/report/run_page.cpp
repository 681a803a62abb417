#include "report/run_page.hpp"

#include "core/contracts.hpp"
#include "report/html_page.hpp"
#include "report/report_json.hpp"
#include "report/run_sections.hpp"

namespace windtunnel {

std::string run_page(const RunPage& page) {
  WT_EXPECT(page.report != nullptr);
  const Report& report = *page.report;
  const ShownDevices shown = shown_devices(page.played);
  HtmlPage html;
  html.kind = "run";
  html.title = report.name;
  html.places = {{"time", "Time"},       {"timeline", "Timeline"}, {"stages", "Stages"},
                 {"network", "Network"}, {"inputs", "Inputs"},     {"scenario", "Scenario"}};
  html.body = html::headline(report) + html::time_section(report) +
              html::timeline_section(shown.text) + html::stage_section(report) +
              html::network_section(report) + html::input_section(report) +
              html::scenario_section(page.scenario);
  html.data = {{"report", to_json(report)}, {"timeline-data", timeline_json(page.played, shown)}};
  html.footer = html::provenance(report);
  return html_document(html);
}

}  // namespace windtunnel
