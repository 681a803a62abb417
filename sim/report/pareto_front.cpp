#include "report/pareto_front.hpp"

#include <algorithm>

#include "report/number_text.hpp"

namespace windtunnel {
namespace {

bool beats(const PricedPoint& one, const PricedPoint& other) {
  return one.days <= other.days && one.cost <= other.cost &&
         (one.days < other.days || one.cost < other.cost);
}

}  // namespace

Chart days_money_chart(const std::vector<PricedPoint>& points) {
  Chart chart{"Days against money",
              Chart::Shape::dots,
              {0, 0, [](double days) { return significant_text(days, 3); }, "days"},
              {0, 0, grouped_text, "money; green: on the front"}};
  for (const PricedPoint& point : points) {
    chart.x.high = std::max(chart.x.high, point.days);
    chart.y.high = std::max(chart.y.high, point.cost);
    if (point.error) {
      chart.x.high = std::max(chart.x.high, point.error->x_high);
      chart.y.high = std::max(chart.y.high, point.error->y_high);
    }
    chart.points.push_back(
        {point.days, point.cost, point.label, point.on_front ? "#1d7a46" : "#87919d", point.error});
  }
  return chart;
}

void mark_pareto_front(std::vector<PricedPoint>& points) {
  for (PricedPoint& point : points)
    point.on_front = std::none_of(points.begin(), points.end(),
                                  [&](const PricedPoint& other) { return beats(other, point); });
}

}  // namespace windtunnel
