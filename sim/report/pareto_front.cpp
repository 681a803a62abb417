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
  Chart chart{"Days against money", Chart::Shape::dots, {}, {}};
  std::vector<double> days, costs;
  for (const PricedPoint& point : points) {
    days.push_back(point.days);
    costs.push_back(point.cost);
    if (point.error) {
      days.push_back(point.error->x_high);
      costs.push_back(point.error->y_high);
    }
    chart.points.push_back(
        {point.days, point.cost, point.label, point.on_front ? "#1d7a46" : "#87919d", point.error});
  }
  chart.x = axis_from_zero(days);
  chart.x.text = [](double value) { return significant_text(value, 3); };
  chart.x.title = "days";
  chart.y = axis_from_zero(costs);
  chart.y.text = grouped_text;
  chart.y.title = "money; green: on the front";
  return chart;
}

void mark_pareto_front(std::vector<PricedPoint>& points) {
  for (PricedPoint& point : points)
    point.on_front =
        std::ranges::none_of(points, [&](const PricedPoint& other) { return beats(other, point); });
}

}  // namespace windtunnel
