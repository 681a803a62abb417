#include "report/ordering.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/contracts.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"

namespace windtunnel {
namespace {

/// Time that a run saves over another, as a share of the other's time.
double saving_of(double ratio) { return 1 - 1 / ratio; }

std::string difference_text(double saving) {
  return percent_text(std::abs(saving)) + (saving < 0 ? " slower" : " faster");
}

/// "by 1.2 to 12.5 %" where both ends have one sign.
std::string between_text(double low, double high) {
  if (low * high < 0) return "between " + difference_text(low) + " and " + difference_text(high);
  const double one = std::abs(low), other = std::abs(high);
  return "by " + fixed_text(100 * std::min(one, other), 1) + " to " +
         percent_text(std::max(one, other));
}

bool beats(const PricedPoint& one, const PricedPoint& other) {
  return one.days <= other.days && one.cost <= other.cost &&
         (one.days < other.days || one.cost < other.cost);
}

}  // namespace

detail::VerdictMark mark_of(const Ordering& ordering) {
  if (ordering.is_known()) return {"✓", detail::Tone::good, "good"};
  return {"~", detail::Tone::doubtful, "doubtful"};
}

Ordering certain(Ordering ordering, std::string reason) {
  WT_EXPECT(ordering.ratio != 1);
  const bool is_faster = ordering.ratio > 1;
  auto& [low, high] = ordering.interval;
  is_faster ? low = std::max(low, 1.0) : high = std::min(high, 1.0);
  ordering.is_certain = true;
  ordering.sure = 1;
  ordering.verdict = is_faster ? OrderVerdict::faster : OrderVerdict::slower;
  ordering.reason = std::move(reason);
  return ordering;
}

std::string text_of(const Ordering& ordering) {
  const double saving = saving_of(ordering.ratio);
  const std::string per_token = ordering.per_token ? " per token" : "";
  const std::string between =
      between_text(saving_of(ordering.interval.first), saving_of(ordering.interval.second));
  const std::string cases =
      ordering.is_certain
          ? "certainly: " + ordering.reason + " (in 90 of 100 cases " + between + ")"
          : "in " + fixed_text(100 * ordering.sure, 0) + " of 100 cases (in 90 of 100 " + between +
                ")";
  switch (ordering.verdict) {
    case OrderVerdict::faster:
      return "faster" + per_token + " by " + percent_text(saving) + ", " + cases;
    case OrderVerdict::slower:
      return "slower" + per_token + " by " + percent_text(-saving) + ", " + cases;
    case OrderVerdict::about_the_same:
      if (percent_text(std::abs(saving)) == percent_text(0))
        return "as fast" + per_token + " by the model (in 90 of 100 cases " + between + ")";
      return "about the same" + per_token + ": " + difference_text(saving) + " by the model, " +
             cases;
    case OrderVerdict::not_known:
      return "not known which is faster" + per_token + ": the difference (" +
             difference_text(saving) + ") is within what the model misses by; the sign is right " +
             cases;
  }
  WT_UNREACHABLE();
}

JsonValue ordering_value(const Ordering& ordering) {
  return object_of(
      {{"ratio_interval", array_of(std::array{ordering.interval.first, ordering.interval.second})},
       {"sure", ordering.sure},
       {"verdict", name_of(ordering.verdict)},
       {"reason", ordering.reason}});
}

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
        {point.days, point.cost, point.label, point.on_front ? "front" : "beaten", point.error});
  }
  chart.x = axis_from_zero(days);
  chart.x.text = number_mark;
  chart.x.title = "days";
  chart.y = axis_from_zero(costs);
  chart.y.text = number_mark;
  chart.y.title =
      "cost" + (points.empty() ? "" : points.front().currency) + "; green: on the front";
  return chart;
}

void mark_pareto_front(std::vector<PricedPoint>& points) {
  for (PricedPoint& point : points)
    point.on_front =
        std::ranges::none_of(points, [&](const PricedPoint& other) { return beats(other, point); });
}

}  // namespace windtunnel
