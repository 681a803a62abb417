#include <functional>

#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"
#include "sweep/sweep_content.hpp"
#include "sweep/sweep_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::detail {
namespace {

using html::card;
using html::escaped;
using html::number;

std::string best_headline(const SweepContent& page) {
  if (!page.has_best())
    return std::string("<h1><span class=\"big\">No point</span> ") +
           (page.ranked.empty() || !page.ranked.front().ok ? "could be simulated"
                                                           : "fits in memory") +
           "</h1>\n";
  const JsonValue& row = page.best().content;
  return "<h1><span class=\"big\">" +
         point_number(0, "tokens_per_s", grouped_text(figure(row, "tokens_per_s"))) +
         "</span> tokens/s at best</h1>\n<p class=\"job best-values\">Best point, " +
         std::to_string(page.best().point) + ": " + escaped(page.values_of(row)) +
         "</p>\n<p class=\"job\">" +
         point_number(0, "iteration_time_s", to_text(Seconds{figure(row, "iteration_time_s")})) +
         " per iteration on " + point_number(0, "gpus", grouped_text(figure(row, "gpus"))) +
         " GPUs, MFU " + point_number(0, "mfu", percent_text(figure(row, "mfu"))) + ", " +
         point_number(0, "memory_max_bytes", to_text(Bytes{figure(row, "memory_max_bytes")})) +
         " of memory on the fullest GPU.</p>\n";
}

std::string warning(const std::string& kind, const std::string& text) {
  return "<p class=\"verdict " + kind + "\">" + escaped(text) + "</p>\n";
}

/// How throughput grows from the smallest cluster to the largest while nothing else changes.
std::string scaling_text(const SweepContent& page) {
  const std::optional<Scaling> scaling = page.data ? scaling_of(*page.data) : std::nullopt;
  if (!scaling) return "";
  const PlotPoint &first = *scaling->smallest, &last = *scaling->largest;
  const double growth = last.tokens_per_s / first.tokens_per_s, ideal = last.x / first.x;
  const std::string& name = scaling->series->name;
  return "<p class=\"job\">" + (name.empty() ? "" : "With " + escaped(name) + ", from ") +
         (name.empty() ? "From " : "") + grouped_text(first.x) + " to " + grouped_text(last.x) +
         " GPUs, " + significant_text(ideal, 3) + " times as many, training is " +
         significant_text(growth, 3) + " times as fast: a scaling efficiency of " +
         escaped(percent_text(growth / ideal)) +
         (page.data->batch_grows ? ", with a batch that grows alike" : "") + ".</p>\n";
}

/// A card of the fitting point whose figure is the smallest, or with a negative sign the largest.
std::string extreme(const SweepContent& page, const char* key, const char* label, double sign,
                    const std::function<std::string(double)>& text) {
  std::size_t found = page.ranked.size();
  for (std::size_t i = 0; i < page.ranked.size() && page.ranked[i].ok && fits(page.ranked[i]); ++i)
    if (found == page.ranked.size() ||
        sign * figure(page.ranked[i].content, key) < sign * figure(page.ranked[found].content, key))
      found = i;
  if (found == page.ranked.size()) return "";
  return card(label, point_number(found, key, text(figure(page.ranked[found].content, key))),
              escaped("point " + std::to_string(page.ranked[found].point)));
}

}  // namespace

std::string headline(const SweepContent& page) {
  const std::size_t total = page.sweep.points().size(), left = total - page.rows.by_point.size();
  const std::size_t ok = page.rows.by_point.size() - page.num_failed;
  std::string html = "<header class=\"hero\">\n<div>\n<p class=\"kicker\">" +
                     escaped(page.sweep.name()) + "</p>\n" + best_headline(page) +
                     scaling_text(page);
  if (left > 0)
    html += warning("doubtful", whole(left) + " of " + whole(total) + " points are left to do");
  if (page.num_failed > 0)
    html += warning("bad", whole(page.num_failed) + " of " + whole(total) +
                               " points could not be simulated; the reasons stand below");
  if (const std::string same = same_text(page.sweep, page.rows); !same.empty())
    html += warning("doubtful", same);
  html += "</div>\n<div class=\"cards\">\n" +
          card("points", number("/points", whole(total)), "of the sweep") +
          card("simulated", number("/ok", whole(ok)), "") +
          card("failed", number("/failed", whole(page.num_failed)), "each with its reason") +
          card("too large", number("/does_not_fit", whole(ok - page.num_fitting)),
               "do not fit in memory");
  html += extreme(page, "mfu", "best MFU", -1, [](double v) { return percent_text(v); });
  html += extreme(page, "iteration_time_s", "shortest iteration", 1,
                  [](double v) { return to_text(Seconds{v}); });
  return html + "</div>\n</header>\n";
}

}  // namespace windtunnel::detail
