#include "report/pareto_front.hpp"

#include <algorithm>

#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "report/svg_text.hpp"

namespace windtunnel {
namespace {

bool beats(const PricedPoint& one, const PricedPoint& other) {
  return one.days <= other.days && one.cost <= other.cost &&
         (one.days < other.days || one.cost < other.cost);
}

// A chart: everything in SVG user units.
constexpr double left = 90, top = 24, chart_width = 700, chart_height = 260;

}  // namespace

std::string days_money_chart(const std::vector<PricedPoint>& points) {
  double longest = 0, most_money = 0;
  for (const PricedPoint& point : points) {
    longest = std::max(longest, point.days);
    most_money = std::max(most_money, point.cost);
  }
  if (longest <= 0 || most_money <= 0) return "";
  const double bottom = top + chart_height;
  std::string svg;
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    svg += svg_text(left + chart_width * share, bottom + 20, significant_text(longest * share, 3),
                    "text-anchor=\"middle\"");
    svg += svg_text(left - 8, bottom - chart_height * share + 4, grouped_text(most_money * share),
                    "text-anchor=\"end\"");
  }
  svg += "<path d=\"M" + svg_number(left) + " " + svg_number(top) + "V" + svg_number(bottom) + "H" +
         svg_number(left + chart_width) + "\" fill=\"none\" stroke=\"currentColor\"/>\n";
  for (const PricedPoint& point : points) {
    const double x = left + chart_width * point.days / longest;
    const double y = bottom - chart_height * point.cost / most_money;
    svg += "<circle cx=\"" + svg_number(x) + "\" cy=\"" + svg_number(y) + "\" r=\"6\" fill=\"" +
           (point.on_front ? "#1d7a46" : "#87919d") + "\"><title>" + html::escaped(point.label) +
           "</title></circle>\n" + svg_text(x + 10, y + 4, point.label, "font-size=\"12\"");
  }
  svg += svg_text(left + chart_width / 2, bottom + 42, "days; up: money; green: on the front",
                  "text-anchor=\"middle\"");
  return svg_chart("Days against money", 1080, 350, svg);
}

void mark_pareto_front(std::vector<PricedPoint>& points) {
  for (PricedPoint& point : points)
    point.on_front = std::none_of(points.begin(), points.end(),
                                  [&](const PricedPoint& other) { return beats(other, point); });
}

}  // namespace windtunnel
