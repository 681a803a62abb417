#include "report/run_page.hpp"

#include "core/contracts.hpp"
#include "report/html_page.hpp"
#include "report/path_shares.hpp"
#include "report/report_json.hpp"
#include "report/run_sections.hpp"
#include "timeline/critical_path.hpp"

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
  const std::vector<PathShare> path =
      path_shares(*page.played.plan, *page.played.programs, *page.played.timeline,
                  find_critical_path(*page.played.programs, *page.played.timeline));
  html.body = html::headline(report) + html::time_section(report, path) +
              html::timeline_section(shown.text) + html::stage_section(report) +
              html::network_section(report) + html::input_section(report) +
              html::scenario_section(page.scenario);
  html.data = {{"report", to_json(report)}, {"timeline-data", timeline_json(page.played, shown)}};
  html.footer = html::provenance(report);
  return html_document(html);
}

}  // namespace windtunnel
