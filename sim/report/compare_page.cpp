#include "report/compare_page.hpp"

#include "core/contracts.hpp"
#include "core/json_build.hpp"
#include "report/compare_sections.hpp"
#include "report/html_page.hpp"
#include "report/report_json.hpp"

namespace windtunnel {
namespace {

std::string title_of(const Comparison& comparison) {
  std::string title;
  for (const ComparedRun& run : comparison.runs)
    title += (title.empty() ? "" : " against ") + run.label;
  constexpr std::size_t longest = 90;
  return title.size() <= longest ? title
                                 : std::to_string(comparison.runs.size()) + " runs against " +
                                       comparison.runs.front().label;
}

/// A list with a null for each run that has no details.
std::string why_json(const Comparison& comparison) {
  return canonical_text(array_of(comparison.runs, [](const ComparedRun& run) {
    return run.details ? run.details->why : JsonValue();
  }));
}

}  // namespace

std::string compare_page(const Comparison& comparison) {
  WT_EXPECT(!comparison.runs.empty());
  const html::ComparedFigures figures(comparison);
  HtmlPage page;
  page.kind = "compare";
  page.title = title_of(comparison);
  page.places = {{"time", "Time"}, {"timeline", "Timeline"}, {"stages", "Stages"}};
  page.places.push_back({"network", "Network"});
  if (html::has_break_evens(comparison)) page.places.push_back({"break-even", "Break-even"});
  page.places.push_back({"inputs", "Inputs"});
  page.places.push_back({"scenarios", "Scenarios"});
  page.body = html::compared_headline(figures) + html::compared_time(figures) +
              html::compared_timelines(figures) + html::compared_stages(figures) +
              html::compared_network(figures) + html::break_even_section(comparison) +
              html::compared_inputs(figures) + html::compared_scenarios(figures);
  page.data = {{"report", without_wall_time(comparison_json(comparison))},
               {"why", why_json(comparison)}};
  for (std::size_t i = 0; i < comparison.runs.size(); ++i)
    if (comparison.runs[i].details)
      page.data.push_back({"timeline-" + std::to_string(i), comparison.runs[i].details->timeline});
  page.footer = html::compared_provenance(figures);
  return html_document(page);
}

}  // namespace windtunnel
