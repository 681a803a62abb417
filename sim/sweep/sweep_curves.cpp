#include "report/html_text.hpp"
#include "sweep/sweep_content.hpp"
#include "sweep/sweep_svg.hpp"

namespace windtunnel::detail {
namespace {

using html::escaped;
using html::section;

std::string curve_note(const SweepContent& page) {
  std::string text;
  if (!page.data->others.empty())
    text += "There are more than " + std::to_string(most_series) +
            " lines' worth of other values: the " + std::to_string(most_series) +
            " with the fastest points are drawn, the others' points are dots. ";
  if (page.data->categories.empty())
    text += "A line joins points that differ in " +
            std::string(page.data->x_counts_gpus ? "the size of the job" : "what the axis shows") +
            " alone. ";
  if (scaling_of(*page.data))
    text += "The dotted line is what the throughput per GPU of its smallest cluster would give. ";
  return text.empty() ? "" : "<p class=\"quiet\">" + escaped(text) + "</p>\n";
}

}  // namespace

std::string curves(const SweepContent& page) {
  if (!page.data)
    return section({"curves", "Curves",
                    "<p>A curve needs two simulated points that differ; here there are none to "
                    "draw.</p>\n"});
  std::string keys, pictures;
  for (const CurveKey& key : curve_keys(*page.data))
    keys += "<span><svg class=\"curves\" viewBox=\"0 -6 30 12\" aria-hidden=\"true\">" +
            key.sample + "</svg>" + escaped(key.name) + "</span> ";
  for (const std::string& picture : sweep_pictures(*page.data)) pictures += picture;
  return section({"curves", "Curves",
                  "<p class=\"keys\">" + keys + "</p>\n<div class=\"plots\">\n" + pictures +
                      "</div>\n" + curve_note(page)});
}

}  // namespace windtunnel::detail
